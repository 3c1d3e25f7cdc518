"""Pure functions that compute verdicts and a report from the state of a group.

Each folder answers one question:

- `assignment`: does the assignment follow the group's strategy?
- `fairness`: how evenly is the work shared?
- `rebalances`: which rebalances happened, why, and what did they cost?
- `lag`: how large is the lag, since when, and which records are lost?
- `conditions`: what is wrong with the group, and since when?
- `severity`: which group needs attention first?

`group_update.py` processes one group's part of a micro-batch. `evaluate.py` builds a group's report from the results
and the last sample.

This package is allowed to import only `group`, `combine`, `events`, `protocol`, `signals` and `assignors`.
"""
