"""Evaluate for each group: its lag in records and in seconds, its status, and its loss of records by retention.

Imports no other folder of `evaluation`.
"""
