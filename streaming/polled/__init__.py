"""Converts coordinators' answers to state rows. Log records produce the same rows (`source.kind = "admin-api"`).

poll.py          defines the answers of one poll, and selects the groups to describe in the next poll
descriptions.py  converts a coordinator's description to an event
differences.py   compares a poll with the known state, and returns state rows for the changes
"""
