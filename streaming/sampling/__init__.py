"""What the log does not say, asked of the brokers with kafka-python: offsets of topics, partition counts, racks."""
