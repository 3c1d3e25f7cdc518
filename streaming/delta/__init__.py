"""The Delta tables: schemas (`tables`), rows, files on disk, upkeep and repair.

May import `evaluation`, `spark` and all packages below them, but not `state`.
"""
