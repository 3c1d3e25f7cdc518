"""What several commands print alike: conditions, fairness, commit gaps, names that are safe to show."""
