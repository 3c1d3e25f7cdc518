"""Find the active conditions of each group, with a start time and a description.

This package is allowed to import `evaluation.group_update`, `evaluation.assignment`, `evaluation.rebalances` and
`evaluation.lag`.
"""
