"""`/metrics`: families of samples made of what is known, as text, and never more series than a limit.

`metrics.py` answers a scrape. `shown` says which metrics are wanted, `families` makes their samples, `exposure` limits
how many are shown, `lines` and `exposition` write the text.

May import `state` and what lies below it.
"""
