"""The current state of a cluster: its groups, their committed offsets, their reports, and their order by severity.

The package is allowed to import `evaluation` and all packages that `evaluation` is allowed to import.
"""
