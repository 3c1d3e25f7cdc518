"""Compare the assignment of a group with the assignment that its strategy computes from the leader's inputs.

This package is allowed to import only one other package of `evaluation`: `evaluation.rebalances`.
"""
