"""Find the cause of a group's lag, from the work of each member and host and from the capacity of each member.

Only groups with late partitions have a cause. This package is allowed to import `evaluation.lag`.
"""
