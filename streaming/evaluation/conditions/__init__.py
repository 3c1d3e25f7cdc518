"""Find the active conditions of each group, their start times and a text that describes them.

May import `evaluation.group_update`, `evaluation.assignment`, `evaluation.rebalances` and `evaluation.lag`.
"""
