"""Reduces the records of one micro-batch to one row per commit key. The few membership records remain.

Offset commits are more than 99 % of `__consumer_offsets`. This package checks and reduces them on whole Arrow buffers
with NumPy. So Python does not process commits one by one. Records that the bulk rules cannot check are decoded one by
one (`streaming.protocol`). Only membership records become events.
"""
