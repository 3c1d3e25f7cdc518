"""What a group's state means: pure functions from the known to verdicts, each with what it was judged from.

One folder per question: `assignment` (is it what the strategy promises?), `fairness` (how evenly is work shared?),
`rebalances` (what happened, why, what did it cost?), `lag` (how far behind, since when, what is lost?), `conditions`
(what is the matter, since when?), `severity` (which group first?). `turn.py` is one group's part of one micro-batch.

May import `group`, `combine`, `events`, `protocol`, `signals` and `assignors`.
"""
