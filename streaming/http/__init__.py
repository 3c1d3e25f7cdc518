"""Serves the HTTP port, with TLS, passwords, limits for clients, content negotiation and compression.

`client.py` and `monitor_api.py` send the requests of commands to other servers.

This package is allowed to import `prometheus` and all layers below `prometheus`.
"""
