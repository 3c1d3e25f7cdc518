"""The range strategies: two of the client (with and without racks), and one of the broker (KIP-848).

This folder imports no other folder of `assignors`.
"""
