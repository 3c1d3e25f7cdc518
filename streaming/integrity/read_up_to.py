"""Compute the time up to which a partition of `__consumer_offsets` was read.

The monitor has read all records that were written before this read time. The timestamp of the last record is not the
read time, because there may be no new records for a long time. The wall clock is not the read time, because the query
can be late. When the query has read up to a sampled end offset, the read time is the time of this sample.
"""

from __future__ import annotations

import msgspec


class ReadUpTo(msgspec.Struct, frozen=True):
    """The time up to which one partition was read. `pending_end` is a sampled end that is not reached yet."""

    read_up_to_ms: int | None = None
    pending_end: int | None = None
    pending_sampled_at_ms: int = 0


def add_sampled_end(known: ReadUpTo, position: int, end: int, sampled_at_ms: int) -> ReadUpTo:
    """Return the state after a sample of the partition's end.

    A new sample does not replace an earlier sampled end that the query has not reached yet. Otherwise, the read time of
    a busy partition would never advance, because the query never reaches the latest end.

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
    """Return the state for a query that has read up to `position`."""
    if known.pending_end is None or position < known.pending_end:
        return known
    return ReadUpTo(known.pending_sampled_at_ms)
