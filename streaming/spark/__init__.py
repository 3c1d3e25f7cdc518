"""The parts of the monitor that use Spark: session, source, Python steps, query plan and checkpoint."""
