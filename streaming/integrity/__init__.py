"""Detect a replaced or truncated `__consumer_offsets`. Find deleted groups and commits whose tombstone was not read.

This package contains only pure functions. It is allowed to import `evaluation` and the layers below `evaluation`.
"""
