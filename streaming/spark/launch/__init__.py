"""Start Spark's JVM with all settings of the session. No module here imports PySpark, because the JVM starts first."""
