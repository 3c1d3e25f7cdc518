"""The start of Spark's JVM, before anything imports PySpark.

- `conf.py`: all settings of the session.
- `jvm.py`: the JVM and its command line.
"""
