"""The firehose narrowed: records of one micro-batch to one row a commit key, plus the few membership records.

Offset commits are more than 99 % of `__consumer_offsets`. They are checked and reduced here on whole Arrow buffers with
NumPy, so that no Python statement runs per commit; only records that the bulk rules cannot vouch for are decoded one by
one (`streaming.protocol`), and only membership records become events.
"""
