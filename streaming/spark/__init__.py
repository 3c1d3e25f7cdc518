"""The parts of the monitor that use Spark: session, sources, Python steps, state and checkpoint.

session.py     the SparkSession and all its settings, each with its reason
source.py      `__consumer_offsets` as a stream
steps.py       the two Python steps: combine (Arrow) and the state function per group (pandas)
query.py       the plan from the source to foreachBatch
checkpoint.py  the checkpoint folder: its lock, its version, the end positions of its batches
state.py       reads the state store
"""
