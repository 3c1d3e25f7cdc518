"""Checks whether an assignment is valid and fair. Finds moves of partitions that were not necessary.

May import `sticky`.
"""
