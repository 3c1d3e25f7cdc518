"""The current state of a cluster: groups, their last commits, their reports, and their order by severity.

May import `evaluation` and all packages below it.
"""
