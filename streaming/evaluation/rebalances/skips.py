"""Whether generation numbers that no record carries were failed rebalances or records compacted away."""

from __future__ import annotations

from collections.abc import Iterable

from streaming.combine.lanes import PartitionSnapshot
from streaming.events import SkipSettled
from streaming.group.snapshot import Skip


def log_was_whole(skip: Skip, lane: PartitionSnapshot) -> bool:
    """Whether every offset between the two records was read.

    The lane remembers only the highest missing offset. One beyond the skip hides what was before it: not proven.
    """
    return lane.last_missing_offset < skip.after_offset


def proven_failures(skips: Iterable[Skip], lane: PartitionSnapshot) -> int:
    """Generations that were joined and never synced, as far as the log proves it."""
    return sum(skip.generations for skip in skips if log_was_whole(skip, lane))


def settlements(skips: Iterable[Skip], lane: PartitionSnapshot) -> tuple[SkipSettled, ...]:
    """The answers a group with open skips is waiting for."""
    return tuple(SkipSettled(skip.before_offset, log_was_whole(skip, lane)) for skip in skips)
