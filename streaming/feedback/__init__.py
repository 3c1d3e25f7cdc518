"""Decide which facts the driver sends to the state of each group. The facts do not come from `__consumer_offsets`.

The package contains only pure functions. The package is allowed to import `evaluation` and the layers below
`evaluation`.
"""
