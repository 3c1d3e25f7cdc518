"""Computes the effect of a different strategy, of members that join or leave, and of more partitions.

The package may import all of `assignors`.
"""
