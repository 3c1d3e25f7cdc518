"""What a snapshot means: pure functions from the known to verdicts, each with what it was judged from.

group_spec.py   the inputs the leader had, as the assignors take them
drift.py        actual against expected, per strategy
imbalance.py    how evenly partitions are shared
lag.py          committed against end offsets, in bulk
judge.py        all of it for one group
"""
