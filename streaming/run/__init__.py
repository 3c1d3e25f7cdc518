"""The running monitor: everything above put together, with its threads, clocks and retries.

monitor.py    the port, Spark, and a watch for each cluster
watch.py      one cluster: start, restore, keep the query alive, stop
prepare.py    the checkpoint and tables a run stands on, made or checked
rebuild.py    a new checkpoint in place of an old one
batches.py    what the driver does with each micro-batch
strategies.py users' own strategies, found before the job starts
sampler.py    the slower beat beside it: sample, lag, upkeep
readiness.py  whether what is shown is the present
hand_back.py  facts on their way back to groups
"""
