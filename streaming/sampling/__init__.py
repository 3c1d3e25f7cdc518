"""Requests to the brokers, with kafka-python, for values that no record has: offsets, partitions, racks, groups."""
