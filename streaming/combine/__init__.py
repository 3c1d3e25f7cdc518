"""Reduces the records of one micro-batch: one row for each commit key, and the few membership records.

Offset commits are more than 99 % of `__consumer_offsets`. This package checks and reduces them on whole Arrow buffers
with NumPy. So Python does not process single commits. Records that the bulk rules cannot check are decoded one by one
(`streaming.protocol`). Only membership records become events.
"""
