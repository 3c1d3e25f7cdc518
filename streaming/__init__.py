"""From `__consumer_offsets` to verdicts: bytes, events, group state, judgement, sinks. See DESIGN.md."""
