"""What Spark's query stands on, and what the driver does with each micro-batch (`batches.py`).

May import `run.cluster_clock` and `run.continuity`.
"""
