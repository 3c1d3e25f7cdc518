"""Converts the answers of coordinators to the same state rows as log records (`source.kind = "admin-api"`).

poll.py          the answers of one poll, and the groups to describe in the next one
descriptions.py  converts a coordinator's description to an event
differences.py   compares a poll with the known state, and returns state rows for the changes
"""
