"""Find the active conditions of each group. Each condition has a start time and a text that describes it.

From `evaluation`, this package imports only `group_update`, `assignment`, `rebalances` and `lag`.
"""
