"""Serves the HTTP port, with TLS, passwords, limits for clients, content negotiation and compression.

This package is allowed to import `prometheus` and all layers below `prometheus`.
"""
