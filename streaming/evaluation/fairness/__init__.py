"""Measure how evenly a group's work is shared: partitions, lag and throughput.

The monitor compares the work of all members, the work of all client hosts, and the work of each topic's subscribers.
From `evaluation`, this package imports only `assignment` and `lag`.
"""
