"""Measure how evenly a group's work is shared: partitions, lag and throughput.

The work is compared among members, among client hosts, and within each topic. May import `evaluation.assignment` and
`evaluation.lag`.
"""
