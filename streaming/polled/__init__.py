"""Convert coordinators' responses to state rows, for `source.kind = "admin-api"`.

poll.py          defines the responses of one poll, and selects the groups to describe in the next poll
descriptions.py  converts a coordinator's description of a group to an event
differences.py   compares a poll with the known state, and returns state rows for the changes

The package may import `combine` and all layers below `combine`.
"""
