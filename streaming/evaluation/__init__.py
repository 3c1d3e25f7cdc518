"""Pure functions that compute verdicts and a report from the state of a group.

Each folder answers one question:

- `assignment`: does the assignment follow the group's strategy?
- `fairness`: how evenly is the work shared?
- `rebalances`: which rebalances happened, why, and what did they cost?
- `lag`: how large is the lag, since when, and which records are lost?
- `causes`: why does the group have lag?
- `what_if`: which change would reduce the lag?
- `conditions`: what is wrong with the group, and since when?
- `incidents`: which problems belong together, and what is their cause?
- `severity`: which group needs attention first?

`group_update.py` processes the events of one group in one micro-batch. `evaluate.py` builds the report of a group from
its stored state and the last sample.

This package is allowed to import only `group`, `combine`, `events`, `protocol`, `signals` and `assignors`.
"""
