"""Evaluate for each group the lag, the status, and the loss of records by retention.

This package must not import another package of `evaluation`.
"""
