"""Check that `__consumer_offsets` is still the same log. Find deletions whose tombstones the monitor did not read.

This package contains only pure functions. It is allowed to import `evaluation` and the layers below `evaluation`.
"""
