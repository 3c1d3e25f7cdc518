"""Checks whether an assignment is valid and fair. Finds needless moves of partitions."""
