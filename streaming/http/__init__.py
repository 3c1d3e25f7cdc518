"""The HTTP port (`port.py`): TLS and passwords, limits for slow and hostile clients, content negotiation, compression.

This package is allowed to import `prometheus` and all packages below `prometheus`.
"""
