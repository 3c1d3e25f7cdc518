"""Is the assignment what the group's strategy promises? The leader's inputs and its decision, replayed.

May import `evaluation.rebalances`.
"""
