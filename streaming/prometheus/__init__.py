"""`/metrics`: families of samples made of what is known, as text, and never more series than a limit.

`metrics.py` is a scrape. What was asked for (`shown`) is made (`*_families`) and counted (`told`), and as much of it as
may be (`exposure`) becomes text (`lines`, `exposition`).

May import `state` and what lies below it.
"""
