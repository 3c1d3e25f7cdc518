"""Start Spark's JVM with all settings of the session.

No module in this package imports PySpark, because the JVM starts first. The package may import `jars` and `config`.
"""
