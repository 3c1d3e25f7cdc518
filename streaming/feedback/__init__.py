"""For each group, decides which external facts the driver sends to the group's state.

This package is pure. It is allowed to import `evaluation` and the layers below `evaluation`.
"""
