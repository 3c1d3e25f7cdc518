"""Evaluate the lag of each group in records and in seconds, its status, and its loss of records by retention.

This package must not import another package of `evaluation`.
"""
