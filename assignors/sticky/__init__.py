"""The sticky strategies, cooperative or not: members alike (`constrained`) and members that differ (`general`).

Imports no other folder.
"""
