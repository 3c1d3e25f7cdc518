"""The uniform strategy of the broker (KIP-848), for equal and for different subscriptions.

The package may import the modules of `assignors`, but no other package.
"""
