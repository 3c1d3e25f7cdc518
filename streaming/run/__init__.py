"""Run the monitor. This package uses all other packages, and adds threads, clocks and retries.

`monitor.py` starts the HTTP port, Spark and one watch per cluster. `watch.py` runs the query (`query`) and the
sampling loop (`samples`) of one cluster.
"""
