"""Checks whether an assignment is valid and fair. Finds needless moves of partitions.

The package may import `assignors.sticky` and the modules of `assignors`.
"""
