"""Describe each rebalance, and find the conditions that follow from the last rebalances.

Imports no other folder of `evaluation`.
"""
