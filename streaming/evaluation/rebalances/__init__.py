"""Describe each rebalance: its cause, the moved partitions and the necessary moves. Find conditions in the last ones.

Imports no other folder of `evaluation`.
"""
