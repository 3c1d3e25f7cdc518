"""Requests to the brokers for values that `__consumer_offsets` does not contain: offsets, partitions, racks, groups.

The package may import `security`, `config`, `evaluation` and all layers below them.
"""
