"""The range strategy of the client, with and without racks, and the range strategy of the broker (KIP-848).

Imports no other folder.
"""
