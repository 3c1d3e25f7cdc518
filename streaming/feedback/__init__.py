"""Decide which facts the driver sends to the state of each group, because `__consumer_offsets` does not contain them.

This package contains only pure functions. It is allowed to import `evaluation` and the layers below `evaluation`.
"""
