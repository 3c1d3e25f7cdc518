"""Evaluate the lag of each group, its status, and its loss of records by retention.

This package must not import another package of `evaluation`.
"""
