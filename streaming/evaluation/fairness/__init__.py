"""How evenly is a group's work shared: partitions, lag and throughput, among members, client hosts and within a topic.

May import `evaluation.assignment` and `evaluation.lag`.
"""
