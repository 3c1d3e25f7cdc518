"""Measure how evenly a group shares its partitions, its lag and its throughput.

The monitor compares the work of all members, the work of all client hosts, and the work of each topic's subscribers.
This package is allowed to import `evaluation.assignment` and `evaluation.lag`.
"""
