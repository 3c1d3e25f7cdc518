"""The monitor. It computes group states, verdicts and outputs from `__consumer_offsets` records. See DESIGN.md."""
