"""Texts that several commands print: conditions, fairness, commit gaps, escaped names."""
