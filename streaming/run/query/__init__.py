"""The Spark query: its start, its restarts, and the work of the driver for each micro-batch.

The package `query` may import all modules of `run` except `cluster_run`, `watch`, `monitor` and `rebuild`.
"""
