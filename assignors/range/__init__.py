"""The range strategies: of the client with racks, of the client without racks, and of the broker (KIP-848).

This folder imports no other folder of `assignors`.
"""
