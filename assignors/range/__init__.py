"""The range strategies: of the client with racks, of the client without racks, and of the broker (KIP-848).

Imports no other folder.
"""
