"""Measures commit gaps: the time from a group's last commit before a rebalance to its first commit afterwards.

Each rule applies to one group. `partition_gaps` updates the gaps with each batch.

1. A gap opens at a *boundary* (`group_boundaries`) whose generation differs from the group's previous generation. If a
   static member rejoins without a new generation, no gap opens. The boundary, the gap and the rebalance in the table
   `rebalances` have the same position.
2. The *last commit* always means the last commit of a partition before the boundary. Deleted commits are ignored.
3. The *first commit* always means the first commit of a partition after the boundary, in log order. If a tombstone for
   the partition comes before its first commit, the gap can close without a first commit of this partition.
4. A gap closes for one of these reasons:
   - `all_committed`: each partition with a last commit now has a first commit or a tombstone.
   - `next_rebalance`: the next boundary of the group was read.
   - `group_deleted`: the tombstone of the group was read, and the group did not change its type (rule 10).
   - `round_passed`: since the boundary, the clock of the `__consumer_offsets` partition has advanced by more than
     `evaluation.stuck_after_seconds`. The first record that moves the clock past this limit closes the gap.
   - `nothing_before`: no partition has a last commit, so the gap closes immediately.
   Commits after the record that closed the gap are ignored, even in the same batch.
5. The gap of a partition is the time from its last commit to its first commit. The gap of a group starts at the newest
   of all last commits, and ends at the oldest of all first commits. The worst gap is the longest gap of a single
   partition. If several partitions have equally long gaps, the partition with the lowest key counts. A partition is
   `silent` if it has no first commit when the gap closes. Silent partitions have no gap, and are counted separately.
6. The *usual interval* is the mean time between two commits of a partition in the previous generation: the total time
   from the first to the last commit of each partition, divided by the total number of intervals between the commits.
7. An offset is missing if its record could not be decoded, or if Spark returned no record for it (compacted record,
   aborted record or transaction marker). The record at a missing offset may be a commit. So a missing offset makes
   these values unknown (`offsets_missing`):
   - The gap is unknown if the missing offset is between the last commit and the first commit.
   - The number of silent partitions is unknown if an offset after a silent partition's last commit is missing.
   - The usual interval is unknown if the missing offset is in the previous generation.
   - The gap is unknown if the group has no last commit and the missing offset is before the boundary.
   The gap can also be unknown without a missing offset. `no_commit_before`: the group has no last commit.
   `no_commit_after`: no partition has a first commit when the gap closes.
8. If the first commit has an earlier timestamp than the last commit, the gap is unknown (`clock_went_back`), because
   the clocks of two brokers differ.
9. The first commit of a partition (rule 3) can have a lower committed offset than its last commit (rule 2). The
   *recommitted records* are the records between these two committed offsets, for example 40 records between 100 and 60.
   If the first commit has the same or a higher committed offset, the partition has 0 recommitted records. The
   recommitted records of a group are the sum over all partitions that have a last and a first commit. Silent partitions
   are not part of the sum. The sum is a lower bound, because members may also have processed other records twice. The
   sum is unknown in these cases:
   - No partition has a last and a first commit.
   - The sum is `IMPOSSIBLE_RECORDS` or more. Then a client committed an offset that no log has, for example 2^63 - 1.
   - An offset is missing between the last and the first commit of a partition, or after the last commit of a silent
     partition (rule 7).
   - The first commit has a lower committed offset than the last commit, and a membership change comes between the
     boundary and the first commit. Then the first commit may be a reset by an operator, for example from 100 to 0. An
     operator can reset offsets only while a group has no members. A reset after the end of the gap does not count.
10. An upgrade or downgrade also starts with a tombstone (`advance`, rule 6). The tombstone and the next boundary of the
    group then have the same timestamp, and the clock of the partition does not advance between them. In this case, the
    tombstone closes the gap with the reason `next_rebalance`, and the group keeps its totals. So the row of a gap that
    a tombstone closed is written only at the next boundary of the group, or when the clock advances. If no boundary
    follows in the same append, for example because the group is empty, the totals of the group start again at zero.
    If the tombstone is the last record of a quiet partition, the row waits for the next record. Kafka deletes all
    commits of a group before or together with the group, and their tombstones come first. So after a normal deletion,
    the gap is already closed with the reason `all_committed`, and no row waits.
"""

from __future__ import annotations

from collections.abc import Iterable
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

GAP_BUCKETS_SECONDS = (1, 2, 3, 5, 7, 10, 15, 30, 60, 300)
"""Upper bounds of the histogram's buckets in seconds. Gaps above the highest bound are in one more bucket."""

IMPOSSIBLE_RECORDS = 1 << 53
"""More records than the logs of a group can contain. Brokers accept any committed offset, up to 2^63 - 1."""


class LastCommit(NamedTuple):
    """A commit: the offset of its record in `__consumer_offsets`, its timestamp, and the committed offset."""

    offset: int
    ms: int
    committed: int


class PartitionCommits(NamedTuple):
    """The last commit of one partition of a group, and its commits in the current generation.

    `run_first_ms` is the time of the first of these commits. `run_commits` is their number.
    """

    last_offset: int
    last_ms: int
    last_committed: int
    run_first_ms: int
    run_commits: int


class FirstCommit(NamedTuple):
    """The first commit and the first tombstone (`dropped_offset`) of one partition after a boundary.

    `first_missing` is the highest missing offset below the first commit. A value that does not exist is -1.
    """

    key: bytes
    first_offset: int
    first_ms: int
    first_committed: int
    first_missing: int
    dropped_offset: int


class OpenGap(msgspec.Struct, frozen=True):
    """A gap that is not closed yet.

    Attributes:
        closes_after_seconds: the partition's clock at the boundary plus `evaluation.stuck_after_seconds`.
        missing_below: the highest missing offset below the boundary, or -1.
        before: the group's latest commit before the boundary.
        pending: the last commits of the partitions that have no first commit and no tombstone yet, by key.
        first: the group's earliest commit after the boundary: offset, time, and the highest missing offset below it.
        worst: the longest gap of a single partition so far, in milliseconds, and the key of this partition.
        is_worst_known, is_recommitted_known: False if the value of at least one partition is unknown.
        resolved_up_to: the offset of the last record that removed a partition from `pending`.
        changed_offset: the offset of the first membership change after the boundary, or -1.
        recommitted_records: the sum so far (rule 9). None until a partition has both a last commit and a first commit.

    """

    group_id: str
    position: Position
    generation_id: int
    closes_after_seconds: int
    missing_below: int
    before: LastCommit | None
    pending: dict[bytes, LastCommit]
    usual_interval_ms: int | None
    first: tuple[int, int, int] | None = None
    worst: tuple[int, bytes] | None = None
    is_worst_known: bool = True
    resolved_up_to: int = -1
    changed_offset: int = -1
    recommitted_records: int | None = None
    is_recommitted_known: bool = True


class CommitGap(msgspec.Struct, frozen=True):
    """A closed gap, with the values of its table row. Unknown values are None. The boundary has the same `position`."""

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
    recommitted_records: int | None
    closed_by: str
    last_commit_ms: int | None = None

    @property
    def end_ms(self) -> int | None:
        """The time of the group's first commit after the boundary, or None if the gap is unknown."""
        if self.last_commit_ms is None or self.commit_gap_ms is None:
            return None
        return self.last_commit_ms + self.commit_gap_ms


class GapTotals(msgspec.Struct, frozen=True):
    """Totals of a group's known gaps, since the monitor first read the group's records.

    The last bucket counts the gaps that are longer than the highest bound.
    """

    buckets: tuple[int, ...] = (0,) * (len(GAP_BUCKETS_SECONDS) + 1)
    sum_ms: int = 0


def usual_interval_ms(partitions: Iterable[PartitionCommits]) -> int | None:
    """Compute the usual interval (rule 6).

    >>> once = PartitionCommits(1, 0, 0, 0, 0)
    >>> usual_interval_ms([PartitionCommits(9, 7_000, 0, 1_000, 3), PartitionCommits(8, 6_000, 0, 2_000, 2), once])
    3333
    """
    committed = [commits for commits in partitions if commits.run_commits]
    intervals = sum(commits.run_commits - 1 for commits in committed)
    spans_ms = sum(commits.last_ms - commits.run_first_ms for commits in committed)
    return spans_ms // intervals if intervals and spans_ms >= 0 else None


def add_first_commits(gap: OpenGap, answers: Iterable[FirstCommit], until_offset: int | None) -> OpenGap:
    """Return the open gap with these first commits added. Records at or after `until_offset` are ignored."""
    pending, first, worst = dict(gap.pending), gap.first, gap.worst
    is_worst_known, resolved_up_to = gap.is_worst_known, gap.resolved_up_to
    recommitted, is_recommitted_known = gap.recommitted_records, gap.is_recommitted_known
    for answer in answers:
        committed = _is_in(answer.first_offset, until_offset)
        dropped = _is_in(answer.dropped_offset, until_offset)
        if committed and (first is None or answer.first_offset < first[0]):
            first = (answer.first_offset, answer.first_ms, answer.first_missing)
        if answer.key not in pending or not (committed or dropped):
            continue
        before = pending.pop(answer.key)
        if dropped and not (committed and answer.first_offset < answer.dropped_offset):
            resolved_up_to = max(resolved_up_to, answer.dropped_offset)
            continue
        resolved_up_to = max(resolved_up_to, answer.first_offset)
        gap_ms, _ = _gap_ms(before, answer.first_ms, answer.first_missing)
        is_worst_known &= gap_ms is not None
        if gap_ms is not None:
            worst = min(worst or (gap_ms, answer.key), (gap_ms, answer.key), key=lambda gap: (-gap[0], gap[1]))
        again = _recommitted_records(before, answer, gap.changed_offset)
        is_recommitted_known &= again is not None
        recommitted = min(IMPOSSIBLE_RECORDS, (recommitted or 0) + (again or 0))
    return msgspec.structs.replace(
        gap,
        pending=pending,
        first=first,
        worst=worst,
        is_worst_known=is_worst_known,
        resolved_up_to=resolved_up_to,
        recommitted_records=recommitted,
        is_recommitted_known=is_recommitted_known,
    )


def _recommitted_records(before: LastCommit, after: FirstCommit, changed_offset: int) -> int | None:
    """Return the recommitted records of one partition (rule 9). None: unknown.

    >>> before, after = LastCommit(5, 0, 100), FirstCommit(b"key", 9, 0, 60, -1, -1)
    >>> _recommitted_records(before, after, -1), _recommitted_records(before, after, changed_offset=8)
    (40, None)
    """
    if after.first_missing > before.offset:
        return None
    if after.first_committed >= before.committed:
        return 0
    is_by_member = not 0 <= changed_offset < after.first_offset
    return before.committed - after.first_committed if is_by_member else None


def _is_in(offset: int, until_offset: int | None) -> bool:
    return offset >= 0 and (until_offset is None or offset < until_offset)


def _gap_ms(before: LastCommit, after_ms: int, missing_below: int) -> tuple[int | None, str | None]:
    if missing_below > before.offset:
        return None, OFFSETS_MISSING
    return (after_ms - before.ms, None) if after_ms >= before.ms else (None, CLOCK_WENT_BACK)


def close_gap(gap: OpenGap, closed_by: str, missing_below: int, omitted_partitions: int = 0) -> CommitGap:
    """Return the closed gap. `missing_below` is the highest missing offset below the record that closed the gap.

    `omitted_partitions` is the number of silent partitions that `pending` does not contain. Their last commits are
    newer than the oldest last commit in `pending`. So the oldest one is enough to check for missing offsets.
    """
    gap_ms, reason = _group_gap_ms(gap, missing_below)
    may_have_committed = any(missing_below > before.offset for before in gap.pending.values())
    worst_ms, worst_key = gap.worst or (None, None)
    if may_have_committed or not gap.is_worst_known:
        worst_ms = worst_key = None
    worst_fields = decode(worst_key, None).key if worst_key else {}
    is_possible = (gap.recommitted_records or 0) < IMPOSSIBLE_RECORDS
    is_recommitted_known = gap.is_recommitted_known and is_possible and not may_have_committed
    return CommitGap(
        group_id=gap.group_id,
        position=gap.position,
        generation_id=gap.generation_id,
        commit_gap_ms=gap_ms,
        unknown_reason=reason,
        worst_topic=worst_fields.get("topic"),
        worst_partition=worst_fields.get("partition"),
        worst_gap_ms=worst_ms,
        silent_partitions=None if may_have_committed or gap.before is None else len(gap.pending) + omitted_partitions,
        usual_interval_ms=gap.usual_interval_ms,
        recommitted_records=gap.recommitted_records if is_recommitted_known else None,
        closed_by=closed_by,
        last_commit_ms=None if gap.before is None or reason == OFFSETS_MISSING else gap.before.ms,
    )


def _group_gap_ms(gap: OpenGap, missing_below: int) -> tuple[int | None, str | None]:
    if gap.before is None:
        return None, NO_COMMIT_BEFORE if gap.missing_below < 0 else OFFSETS_MISSING
    if gap.first is None or (not gap.pending and gap.first[0] > gap.resolved_up_to):
        return None, NO_COMMIT_AFTER if missing_below <= gap.before.offset else OFFSETS_MISSING
    _, first_ms, first_missing = gap.first
    return _gap_ms(gap.before, first_ms, first_missing)


def add_to_totals(totals: GapTotals, gap: CommitGap) -> GapTotals:
    """Return the totals after this gap. An unknown gap does not change the totals.

    >>> gap = CommitGap("g", Position(0, 0, 0), 1, 5_000, None, None, None, None, 0, None, 0, ALL_COMMITTED)
    >>> add_to_totals(GapTotals(), gap)
    GapTotals(buckets=(0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0), sum_ms=5000)
    """
    if gap.commit_gap_ms is None:
        return totals
    bucket = sum(gap.commit_gap_ms > 1000 * bound for bound in GAP_BUCKETS_SECONDS)
    buckets = tuple(count + (number == bucket) for number, count in enumerate(totals.buckets))
    return GapTotals(buckets, totals.sum_ms + gap.commit_gap_ms)
