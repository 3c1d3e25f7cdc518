"""Defines the state of one group, and updates the state with each event.

snapshot.py   `GroupSnapshot`: the state of a group; counters are totals
advance.py    `advance(snapshot, event) -> GroupSnapshot`: the rules by which events change the state
codec.py      (version, bytes): the stored form and its migrations
"""
