"""Start Spark's JVM with all settings of the session.

No module in this package imports PySpark. So the JVM can start before PySpark is imported. The package may import
`jars` and `config`.
"""
