"""The uniform strategy of the broker (KIP-848), for equal and for different subscriptions."""
