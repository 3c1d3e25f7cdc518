"""From `__consumer_offsets` to verdicts: bytes, events, group state, evaluation, outputs. See DESIGN.md."""
