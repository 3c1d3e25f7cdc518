"""Up to which time a partition of `__consumer_offsets` has been read: what was written until then is known.

A partition without new records says nothing of the time, and the clock on the wall says nothing of a backlog. But a
sample says where the partition ended at a moment; once reading has passed that end, all up to that moment was read.
"""

from __future__ import annotations

import msgspec


class ReadUpTo(msgspec.Struct, frozen=True):
    """What is known of one partition: the moment (None: none yet), and the end that was not reached yet."""

    read_up_to_ms: int | None = None
    pending_end: int | None = None
    pending_sampled_at_ms: int = 0


def add_sampled_end(known: ReadUpTo, position: int, end: int, sampled_at_ms: int) -> ReadUpTo:
    """Take in where the partition ended at a moment.

    An end that is not reached yet stays awaited when the next is sampled: on a busy partition no last end ever is
    reached, and time would stand still.

    >>> behind = add_sampled_end(ReadUpTo(), position=5, end=9, sampled_at_ms=1_000)
    >>> later = add_sampled_end(behind, position=7, end=20, sampled_at_ms=6_000)
    >>> behind.read_up_to_ms, later.pending_end, advance_position(later, 9).read_up_to_ms
    (None, 9, 1000)
    """
    if position >= end:
        return ReadUpTo(sampled_at_ms)
    known = advance_position(known, position)
    if known.pending_end is not None:
        return known
    return ReadUpTo(known.read_up_to_ms, end, sampled_at_ms)


def advance_position(known: ReadUpTo, position: int) -> ReadUpTo:
    """Take in how far reading has come."""
    if known.pending_end is None or position < known.pending_end:
        return known
    return ReadUpTo(known.pending_sampled_at_ms)
