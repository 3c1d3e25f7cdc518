"""Find the cause of a group's lag. The inputs are the work of members and hosts, and the capacity of members.

Only groups with late partitions have a cause. This package is allowed to import `evaluation.lag`.
"""
