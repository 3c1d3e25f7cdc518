"""Runs the monitor with threads, clocks and retries.

`monitor.py` starts the HTTP port, Spark and one watch per cluster. `watch.py` runs the query (`query`) and the sampling
loop (`samples`) of one cluster. The package may import all packages except `cli` and `demo`.
"""
