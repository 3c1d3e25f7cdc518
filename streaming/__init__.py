"""The monitor. It turns the records of `__consumer_offsets` into group states, verdicts and outputs. See DESIGN.md."""
