"""Evaluate what brokers delete: records that a group has not read, and committed offsets of inactive groups.

This package is allowed to import the parent package, except `lag_evaluation`.
"""
