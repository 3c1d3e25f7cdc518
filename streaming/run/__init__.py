"""The running monitor: everything above put together, with its threads, clocks and retries.

monitor.py    start, restore, keep the query alive, stop
prepare.py    the checkpoint and tables a run stands on, made or checked
batches.py    what the driver does with each micro-batch
sampler.py    the slower beat beside it: sample, lag, readiness, facts handed back
"""
