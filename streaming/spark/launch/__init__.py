"""Start Spark's JVM before any module imports PySpark.

- `conf.py`: all settings of the session.
- `jvm.py`: the JVM and its command line.
"""
