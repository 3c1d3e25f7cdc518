"""What the tables hold as of a moment: the report of each group, and the lag of its partitions.

`comparison.py` compares two generations.

Only `reader.py` reads tables. All other modules compute values from rows. No module reads the clock.
"""
