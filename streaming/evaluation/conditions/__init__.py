"""What is the matter with a group at this moment, since when, and in words for a person.

May import `evaluation.group_update`, `evaluation.assignment`, `evaluation.rebalances` and `evaluation.lag`.
"""
