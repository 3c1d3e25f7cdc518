"""The sticky strategies. `constrained` is for equal subscriptions, and `general` is for different subscriptions.

This folder imports no other folder of `assignors`.
"""
