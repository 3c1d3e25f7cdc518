"""The Delta tables: their schemas (`tables`), rows, files on disk, maintenance and repair.

May import `evaluation`, `spark` and all packages below them, but not `state`.
"""
