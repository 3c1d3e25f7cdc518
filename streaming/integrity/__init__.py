"""Checks that `__consumer_offsets` is still the log that was read, and finds deletions without a tombstone.

This package is pure. It may import `evaluation` and the layers below.
"""
