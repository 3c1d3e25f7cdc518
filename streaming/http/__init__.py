"""Serves the HTTP port, with TLS, passwords, limits for clients, content negotiation and compression.

Commands use `client.py` and `monitor_api.py` to send requests to other servers. This package is allowed to import
`prometheus` and all layers below `prometheus`.
"""
