"""Find the cause of a group's lag: the work of each member and host, the capacity of each member, and the rules.

This package is allowed to import `evaluation.lag`. The cause is computed only for groups with late partitions.
"""
