"""For each group, decides which external facts the driver sends to the group's state.

This package contains only pure functions. It is allowed to import `evaluation` and the layers below `evaluation`.
"""
