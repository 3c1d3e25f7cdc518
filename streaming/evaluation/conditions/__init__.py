"""Find the active conditions of each group. Each condition has a start time and a text that describes it.

This package is allowed to import `evaluation.group_update`, `evaluation.assignment`, `evaluation.rebalances` and
`evaluation.lag`.
"""
