"""The parts of the monitor that use Spark: session, sources, Python steps, state and checkpoint.

- `launch/`: Spark's JVM, and all settings of the session.
- `session.py`: the start and the stop of the SparkSession.
- `source.py`: `__consumer_offsets` as a stream.
- `steps.py`: the two Python steps. The first step combines records (Arrow). The second step computes the state of each
  group (pandas).
- `query.py`: the Spark plan from the source to `foreachBatch`.
- `checkpoint.py`: the checkpoint folder with its lock, its version and the end positions of its batches.
- `state.py`: the functions that read the state store.
"""
