"""Restores the report of each group, and the lag of its partitions, at a past moment.

`comparison.py` compares two generations. Only `reader.py` reads tables. The other modules of this package compute
values from rows. No module reads the system clock. The package may import `delta` and all layers below `delta`.
"""
