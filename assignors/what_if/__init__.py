"""Computes how a different strategy, more or fewer members, or more partitions would change an assignment.

The package may import all of `assignors`.
"""
