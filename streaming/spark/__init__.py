"""Spark, and nothing but wiring: which source, which steps, which state, which checkpoint.

session.py     the SparkSession and every setting it needs, each with its reason
source.py      `__consumer_offsets` as a stream
steps.py       the two Python steps: combine (Arrow) and the per-group state function (pandas)
query.py       the plan from source to foreachBatch
checkpoint.py  the checkpoint folder: who holds it, what version wrote it, where a batch ends
state.py       reading back what the state store holds
"""
