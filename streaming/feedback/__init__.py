"""Decide which facts the driver sends to the state of each group. These facts do not come from `__consumer_offsets`.

This package contains only pure functions. It is allowed to import `evaluation` and the layers below `evaluation`.
"""
