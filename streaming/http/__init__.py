"""The HTTP port (`port.py`): TLS and passwords, limits for slow and hostile clients, content negotiation, compression.

May import `prometheus` and all packages below it.
"""
