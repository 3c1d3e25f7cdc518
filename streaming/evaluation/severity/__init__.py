"""Describe in one line what is wrong with each group, and rank the groups by severity.

May import all of `evaluation`.
"""
