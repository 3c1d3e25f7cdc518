"""Detect a replaced or truncated `__consumer_offsets`. Find deleted groups and commits whose tombstone was not read.

The package contains only pure functions. The package is allowed to import `evaluation` and the layers below
`evaluation`.
"""
