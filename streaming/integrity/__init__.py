"""Detect a replaced or truncated `__consumer_offsets`, and deletions whose tombstones the monitor did not read.

The package contains only pure functions. The package is allowed to import `evaluation` and the layers below
`evaluation`.
"""
