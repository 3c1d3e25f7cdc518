"""Defines, writes and maintains the Delta tables of the monitor.

The package `delta` may import `evaluation`, `spark` and all packages below them, but not `state`.
"""
