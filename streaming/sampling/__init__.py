"""What the log does not say, asked of the brokers with kafka-python: end offsets, log starts, partition counts, racks."""
