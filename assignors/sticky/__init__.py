"""The sticky strategies, eager and cooperative, for equal (`constrained`) and different subscriptions (`general`).

Imports no other folder.
"""
