"""Checks that `__consumer_offsets` is still the same log, and finds deletions whose tombstones were not read.

This package contains only pure functions. It is allowed to import `evaluation` and the layers below `evaluation`.
"""
