"""Requests to the brokers for values that `__consumer_offsets` does not contain: offsets, partitions, racks, groups."""
