"""Find the cause of a group's lag, from the work and the capacity of its members and hosts.

Only groups with late partitions have a cause. This package is allowed to import `evaluation.lag`.
"""
