"""The Delta tables: their schemas (`tables`), verdicts as rows, the tables on disk, their upkeep and their repair.

May import `evaluation`, `spark` and what lies below them; nothing of `state`.
"""
