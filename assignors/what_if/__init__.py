"""Computes the effect of a different strategy, of members that join or leave, and of more partitions.

This folder may import all of `assignors`.
"""
