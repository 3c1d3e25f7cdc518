"""The current state of a cluster: its groups, their committed offsets, their reports, and their order by severity.

The package may import `evaluation` and all packages below it.
"""
