"""What coordinators answer when asked, as the rows that the log would have become (`source.kind = "admin-api"`).

poll.py          one poll as a value, and what to ask next
descriptions.py  a coordinator's description as an event
differences.py   a poll against what is known, as lane rows: only what is new
"""
