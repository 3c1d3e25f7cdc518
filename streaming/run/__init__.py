"""The running monitor: everything below put together, with its threads, clocks and retries.

`monitor.py` holds the port, Spark and a watch for each cluster; `watch.py` one cluster's query (`query`) and samples
(`samples`).
"""
