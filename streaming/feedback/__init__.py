"""Decide which facts from outside `__consumer_offsets` the driver sends to the state of each group.

This package contains only pure functions. It is allowed to import `evaluation` and the layers below `evaluation`.
"""
