"""Compare the assignment of a group with the assignment that its strategy computes from the leader's inputs.

From `evaluation`, this package imports only `evaluation.rebalances`.
"""
