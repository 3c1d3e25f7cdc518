"""Defines, writes and maintains the Delta tables of the monitor.

This package may import `evaluation`, `spark` and all packages below them, but not `state`.
"""
