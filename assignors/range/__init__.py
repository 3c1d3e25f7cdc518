"""The range strategy of classic groups, with racks and without, and the broker's one (KIP-848).

Imports no other folder.
"""
