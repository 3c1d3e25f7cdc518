"""Requests to the brokers for values that records do not contain: offsets, partitions, racks, groups."""
