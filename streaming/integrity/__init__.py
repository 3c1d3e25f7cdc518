"""Whether `__consumer_offsets` is the log that was read, up to when it was read, and what is gone without a record.

Pure. May import `evaluation` and what lies below it.
"""
