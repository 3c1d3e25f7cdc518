"""Defines the state of one group, and the rules by which events change the state.

snapshot.py   `GroupSnapshot`: the state of a group, with its total counts
advance.py    `advance(snapshot, event)` returns the `GroupSnapshot` after the event
codec.py      converts the state to (version, bytes) and back

The package may import `events`, `protocol` and `assignors`.
"""
