"""Evaluate the lag of each group in records and in seconds, its status, and its loss of records by retention.

This package imports no other package of `evaluation`.
"""
