"""Find the active conditions of each group, their start times and their descriptions.

This package is allowed to import `evaluation.group_update`, `evaluation.assignment`, `evaluation.rebalances` and
`evaluation.lag`.
"""
