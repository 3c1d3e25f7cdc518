"""Evaluate what brokers delete: records that a group has not read, and committed offsets of inactive groups.

It is allowed to import the parent package, except `lag_evaluation`.
"""
