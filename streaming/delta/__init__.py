"""The Delta tables: their schemas (`tables`), rows, files on disk, maintenance and repair.

This package may import `evaluation`, `spark` and all packages below them, but not `state`.
"""
