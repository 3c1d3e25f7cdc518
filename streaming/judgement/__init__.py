"""What a snapshot means: pure functions from the known to verdicts, each with what it was judged from.

group_spec.py   the inputs the leader had, as the assignors take them
drift.py        actual against expected, per strategy
imbalance.py    how evenly partitions, lag and throughput are shared: among members, hosts, within a topic
lag.py          committed against end offsets, in bulk; or why that is unknown
lag_seconds.py  the same in time, from end offsets sampled before
status.py       keeping up, slow, standing, silent or thrown back, by the last commits
retention.py    what was deleted unread, and how long until more is
unsubscribed.py partitions a stable group has left
judge.py        all of it for one group
"""
