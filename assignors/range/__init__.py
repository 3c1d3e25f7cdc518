"""The range strategies: one of the client, with and without racks, and one of the broker (KIP-848).

Imports no other folder.
"""
