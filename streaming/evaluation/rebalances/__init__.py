"""What happened at each rebalance, why, what moved and what had to; and what the last rebalances show together.

Imports no other folder of `evaluation`.
"""
