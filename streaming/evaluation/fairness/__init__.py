"""Measure how evenly a group shares its partitions, its lag and its throughput.

The monitor compares the work of all members, of all client hosts, and of each topic's subscribers. This package is
allowed to import `evaluation.assignment` and `evaluation.lag`.
"""
