"""What the state of a group means: pure functions from known values to verdicts and reports.

One folder per question: `assignment` (does it follow the strategy?), `fairness` (how evenly is work shared?),
`rebalances` (what happened, why, at what cost?), `lag` (how far behind, since when, what is lost?), `conditions`
(what is wrong over time?), `severity` (which group first?). `group_update.py` processes one group's part of a
micro-batch. `evaluate.py` builds a group's report from the results and the last sample.

May import `group`, `combine`, `events`, `protocol`, `signals` and `assignors`.
"""
