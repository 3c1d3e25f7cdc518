"""The range strategies of the client (with and without racks) and of the broker (KIP-848).

The package may import the modules of `assignors`, but no other package.
"""
