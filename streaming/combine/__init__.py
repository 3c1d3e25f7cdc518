"""Reduces the offset commits of one micro-batch to the last commits of each key.

The package also converts membership records to events. Offset commits are more than 99 % of the records of
`__consumer_offsets`. So the package checks and reduces whole Arrow buffers of commits with NumPy. Only records that
NumPy cannot check are decoded one by one (`streaming.protocol`). The package may import `group`, `events`, `protocol`
and `assignors`.
"""
