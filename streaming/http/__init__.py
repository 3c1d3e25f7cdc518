"""Serves the HTTP port (`port.py`). Contains TLS, passwords, limits for clients, content negotiation and compression.

This package is allowed to import `prometheus` and all layers below `prometheus`.
"""
