"""The sticky strategies. `constrained` is for equal subscriptions, and `general` is for different subscriptions.

Imports no other folder.
"""
