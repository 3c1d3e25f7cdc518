"""Describe each rebalance, and find the conditions that follow from the last rebalances.

This package must not import other packages of `evaluation`.
"""
