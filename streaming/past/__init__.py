"""Restores the state of each group at a past moment from the tables: its report, and the lag of its partitions.

`comparison.py` compares two generations. Only `reader.py` reads tables. The other modules of this package compute
values from rows. No module reads the clock.
"""
