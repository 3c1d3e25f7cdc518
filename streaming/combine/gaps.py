"""Commit gaps: how long a group did not commit at a rebalance. One group's rules; nothing here knows of batches.

Rules:

1. A gap opens at a *boundary* (`boundaries`) whose generation is not the group's last: a static member's rejoin within
   its generation opens none. Its key is the boundary's position, which is that of the row in `rebalances`.
2. *Before* are the last commits of the group's partitions as of the boundary. A deleted commit is none.
3. *After* counts, of each partition, the first commit behind the boundary, in the order of the log. A partition whose
   commit is deleted first is awaited no more.
4. The gap closes when every partition that had a commit before has one after, or was deleted (`all_committed`); at the
   group's next boundary (`next_rebalance`), at its tombstone (`group_deleted`), or with the first record of the Kafka
   partition that is later than the boundary by more than a round (`round_passed`), by the partition's clock. Without
   a commit before it closes at once (`nothing_before`). What comes behind counts no more, however late it is noticed.
5. The group's gap is the time from the last commit before to the first one after, whatever partitions they are of.
   The worst partition's is the longest from its own commit before to its own commit after; of equals the one whose key
   is first. Those that did not commit until the gap closed are `silent`: they are counted, and are not the worst.
6. The *usual interval* is the mean time between two commits of a partition in the generation before: the sum over all
   partitions of (last - first), over the sum of (commits - 1).
7. Unknown is what an offset that is missing from the log could change (`offsets_missing`): compacted away, aborted, a
   transaction's marker, or in quarantine. Between a commit before and the one after it, that gap; where nobody
   committed, the silence; in the generation before, the usual interval; below a boundary without a commit before, that
   there was none (else `no_commit_before`). Nobody committed until the gap closed: `no_commit_after`.
8. A time that is earlier than the one it is to follow makes no gap (`clock_went_back`): two brokers wrote them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from streaming.events import Position
from streaming.protocol import decode

ALL_COMMITTED = "all_committed"
NEXT_REBALANCE = "next_rebalance"
GROUP_DELETED = "group_deleted"
ROUND_PASSED = "round_passed"
NOTHING_BEFORE = "nothing_before"

OFFSETS_MISSING = "offsets_missing"
NO_COMMIT_BEFORE = "no_commit_before"
NO_COMMIT_AFTER = "no_commit_after"
CLOCK_WENT_BACK = "clock_went_back"

GAP_BUCKETS_SECONDS = (1, 5, 15, 60, 300)
"""Upper bounds of the histogram's buckets; what is longer is in one of its own."""

OffsetAndMs = tuple[int, int]
"""Log offset and time of a commit."""


class PartitionCommits(NamedTuple):
    """A partition's last commit, and its commits in this generation: the first one's time and how many (0: none)."""

    last_offset: int
    last_ms: int
    run_first_ms: int
    run_commits: int


class FirstCommit(NamedTuple):
    """What came of one partition behind a boundary: its first commit and the offset of its first tombstone; -1: none.

    `first_missing` is the highest missing offset below that commit.
    """

    key: bytes
    first_offset: int
    first_ms: int
    first_missing: int
    dropped_offset: int


class OpenGap(msgspec.Struct, frozen=True):
    """A gap that may still change.

    Attributes:
        closes_after_seconds: the partition's clock at the boundary, and a round more.
        missing_below: the highest missing offset below the boundary.
        before: the group's last commit before the boundary.
        awaited: by key the last commit before, of partitions that have none after.
        first: the group's first commit behind the boundary, and the highest missing offset below it.
        worst: the longest of the partitions' gaps so far, with the partition's key.
        is_worst_known: whether every partition's gap so far is.
        answered_up_to: the offset of the last record that took a partition out of `pending`.

    """

    group_id: str
    position: Position
    generation_id: int
    closes_after_seconds: int
    missing_below: int
    before: OffsetAndMs | None
    pending: dict[bytes, OffsetAndMs]
    usual_interval_ms: int | None
    first: tuple[int, int, int] | None = None
    worst: tuple[int, bytes] | None = None
    is_worst_known: bool = True
    answered_up_to: int = -1


class CommitGap(msgspec.Struct, frozen=True):
    """A gap as its row has it: times in milliseconds, None where unknown. `position` is the boundary's."""

    group_id: str
    position: Position
    generation_id: int
    commit_gap_ms: int | None
    unknown_reason: str | None
    worst_topic: str | None
    worst_partition: int | None
    worst_gap_ms: int | None
    silent_partitions: int | None
    usual_interval_ms: int | None
    closed_by: str


class GapTotals(msgspec.Struct, frozen=True):
    """A group's known gaps since it was first seen: how many in each bucket (the last: longer), and their sum."""

    buckets: tuple[int, ...] = (0,) * (len(GAP_BUCKETS_SECONDS) + 1)
    sum_ms: int = 0


def opened(  # noqa: PLR0913, PLR0917 - all that a boundary finds
    group_id: str,
    position: Position,
    generation_id: int,
    closes_after_seconds: int,
    missing_below: int,
    partitions: Mapping[bytes, PartitionCommits],
    since_offset: int | None,
) -> OpenGap:
    """Open a gap. `partitions` are the group's live commits by key, `since_offset` is its last boundary, if known."""
    pending = {key: (commits.last_offset, commits.last_ms) for key, commits in partitions.items()}
    is_whole = since_offset is not None and missing_below <= since_offset
    return OpenGap(
        group_id=group_id,
        position=position,
        generation_id=generation_id,
        closes_after_seconds=closes_after_seconds,
        missing_below=missing_below,
        before=max(pending.values(), default=None),
        pending=pending,
        usual_interval_ms=_usual_interval_ms(partitions.values()) if is_whole else None,
    )


def _usual_interval_ms(partitions: Iterable[PartitionCommits]) -> int | None:
    """Rule 6.

    >>> once = PartitionCommits(1, 0, 0, 0)
    >>> _usual_interval_ms([PartitionCommits(9, 7_000, 1_000, 3), PartitionCommits(8, 6_000, 2_000, 2), once])
    3333
    """
    committed = [commits for commits in partitions if commits.run_commits]
    intervals = sum(commits.run_commits - 1 for commits in committed)
    spans_ms = sum(commits.last_ms - commits.run_first_ms for commits in committed)
    return spans_ms // intervals if intervals and spans_ms >= 0 else None


def answered(gap: OpenGap, answers: Iterable[FirstCommit], until_offset: int | None) -> OpenGap:
    """The gap after what came of some partitions below `until_offset` (None: no end is in sight)."""
    pending, first, worst = dict(gap.pending), gap.first, gap.worst
    is_worst_known, answered_up_to = gap.is_worst_known, gap.answered_up_to
    for answer in answers:
        committed = _is_in(answer.first_offset, until_offset)
        dropped = _is_in(answer.dropped_offset, until_offset)
        if committed and (first is None or answer.first_offset < first[0]):
            first = answer[1:4]
        if answer.key not in pending or not (committed or dropped):
            continue
        before_offset, before_ms = pending.pop(answer.key)
        if dropped and not (committed and answer.first_offset < answer.dropped_offset):
            answered_up_to = max(answered_up_to, answer.dropped_offset)
            continue
        answered_up_to = max(answered_up_to, answer.first_offset)
        gap_ms, _ = _gap_ms(before_offset, before_ms, answer.first_ms, answer.first_missing)
        is_worst_known &= gap_ms is not None
        worst = worst if gap_ms is None else _longer(worst, (gap_ms, answer.key))
    return msgspec.structs.replace(
        gap,
        pending=pending,
        first=first,
        worst=worst,
        is_worst_known=is_worst_known,
        answered_up_to=answered_up_to,
    )


def _is_in(offset: int, until_offset: int | None) -> bool:
    return offset >= 0 and (until_offset is None or offset < until_offset)


def _gap_ms(before_offset: int, before_ms: int, after_ms: int, missing_below: int) -> tuple[int | None, str | None]:
    if missing_below > before_offset:
        return None, OFFSETS_MISSING
    return (after_ms - before_ms, None) if after_ms >= before_ms else (None, CLOCK_WENT_BACK)


def _longer(worst: tuple[int, bytes] | None, other: tuple[int, bytes]) -> tuple[int, bytes]:
    return other if worst is None else min(worst, other, key=lambda of: (-of[0], of[1]))


def closed(gap: OpenGap, closed_by: str, missing_below: int) -> CommitGap:
    """The gap as it is told; `missing_below` is the highest missing offset below the record that closed it."""
    gap_ms, reason = _group_gap_ms(gap, missing_below)
    may_have_committed = any(missing_below > before_offset for before_offset, _ in gap.pending.values())
    worst_ms, worst_key = gap.worst or (None, None)
    if may_have_committed or not gap.is_worst_known:
        worst_ms = worst_key = None
    worst_fields = decode(worst_key, None).key if worst_key else {}
    return CommitGap(
        group_id=gap.group_id,
        position=gap.position,
        generation_id=gap.generation_id,
        commit_gap_ms=gap_ms,
        unknown_reason=reason,
        worst_topic=worst_fields.get("topic"),
        worst_partition=worst_fields.get("partition"),
        worst_gap_ms=worst_ms,
        silent_partitions=None if may_have_committed or gap.before is None else len(gap.pending),
        usual_interval_ms=gap.usual_interval_ms,
        closed_by=closed_by,
    )


def _group_gap_ms(gap: OpenGap, missing_below: int) -> tuple[int | None, str | None]:
    if gap.before is None:
        return None, NO_COMMIT_BEFORE if gap.missing_below < 0 else OFFSETS_MISSING
    before_offset, before_ms = gap.before
    if gap.first is None or (not gap.pending and gap.first[0] > gap.answered_up_to):
        return None, NO_COMMIT_AFTER if missing_below <= before_offset else OFFSETS_MISSING
    _, first_ms, first_missing = gap.first
    return _gap_ms(before_offset, before_ms, first_ms, first_missing)


def counted(totals: GapTotals, gap: CommitGap) -> GapTotals:
    """The totals with one gap more; one that is not known counts nowhere.

    >>> gap = CommitGap("g", Position(0, 0, 0), 1, 5_000, None, None, None, None, 0, None, ALL_COMMITTED)
    >>> counted(GapTotals(), gap)
    GapTotals(buckets=(0, 1, 0, 0, 0, 0), sum_ms=5000)
    """
    if gap.commit_gap_ms is None:
        return totals
    bucket = sum(gap.commit_gap_ms > 1000 * bound for bound in GAP_BUCKETS_SECONDS)
    buckets = tuple(count + (number == bucket) for number, count in enumerate(totals.buckets))
    return GapTotals(buckets, totals.sum_ms + gap.commit_gap_ms)
