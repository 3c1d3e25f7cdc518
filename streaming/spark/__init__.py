"""The parts of the monitor that use Spark: session, source, Python steps, query plan and checkpoint.

The package may import `custom`, `jars`, `config`, `evaluation` and all layers below `evaluation`.
"""
