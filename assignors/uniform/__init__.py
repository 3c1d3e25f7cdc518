"""The broker's uniform strategy (KIP-848): members alike and members that differ.

Imports no other folder.
"""
