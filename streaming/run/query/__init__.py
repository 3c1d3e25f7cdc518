"""Spark's query: what it needs to start, how it is kept running, and what the driver does with each micro-batch.

May import all modules of `run` but `cluster_run`, `watch`, `monitor` and `rebuild`.
"""
