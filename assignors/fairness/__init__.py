"""Checks whether an assignment is valid and fair, and finds moves of partitions that were not necessary.

May import `sticky`.
"""
