"""The range strategies of the client (with and without racks) and of the broker (KIP-848)."""
