"""Serves the HTTP port: protects the port, limits clients, and selects the formats of responses.

Commands use `client.py` to send requests to other servers. The package `http` may import `prometheus` and all layers
below `prometheus`.
"""
