"""What is known of one group, and how each event changes it.

snapshot.py   the known: `GroupSnapshot`, counters as absolute totals
advance.py    `advance(snapshot, event) -> GroupSnapshot`, the only way a snapshot changes
codec.py      (version, bytes): the stored form and its migrations
"""
