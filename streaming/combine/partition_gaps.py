"""The gaps of one Kafka partition's groups, carried from batch to batch. The rules of each are in `gaps`.

Commits of groups without a boundary in the batch are merged as columns. Only where something happened to a group does
a Python statement run for it: it has a boundary in the batch, or waits for the very key that was committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.boundaries import Boundary, Clock, group_numbers, group_of
from streaming.combine.gaps import (
    ALL_COMMITTED,
    GROUP_DELETED,
    NEXT_REBALANCE,
    NOTHING_BEFORE,
    ROUND_PASSED,
    CommitGap,
    FirstCommit,
    GapTotals,
    OpenGap,
    PartitionCommits,
    answered,
    closed,
    counted,
    opened,
)
from streaming.combine.runs import of_boundary
from streaming.combine.wire import BoolArray
from streaming.events import Position


class GroupGaps(msgspec.Struct, frozen=True):
    """A group with members: its last boundary, and its gaps so far."""

    group_id: str
    generation_id: int
    since_offset: int
    totals: GapTotals = GapTotals()


class PartitionGaps(msgspec.Struct, frozen=True):
    """What is remembered of one Kafka partition: its clock; by group (`group_of`) its last boundary and open gap."""

    clock_seconds: int = -1
    groups: dict[bytes, GroupGaps] = {}
    open: dict[bytes, OpenGap] = {}


@dataclass(frozen=True, slots=True)
class Happened:
    """One batch of one partition: boundaries in log order, runs (RUN_SCHEMA), the clock's steps.

    `missing_before` is the highest offset missing before the batch.
    """

    offsets_topic_partition: int
    boundaries: Sequence[Boundary]
    runs: pa.Table
    clock: bytes
    missing_before: int


@dataclass(frozen=True, slots=True)
class MergedGaps:
    """The gaps after a batch. `partition_commits`: the live keys of groups with a boundary in it."""

    gaps: PartitionGaps
    closed: tuple[CommitGap, ...]
    touched: frozenset[bytes]
    partition_commits: Mapping[bytes, PartitionCommits]


def merged_gaps(gaps: PartitionGaps, known: pa.Table, happened: Happened, stuck_after_seconds: int) -> MergedGaps:
    """Take in a batch. `known` are the live commits before it (`partition_states.LIVE_SCHEMA`)."""
    merge = _Merge(
        happened, Clock.of(gaps.clock_seconds, happened.clock), stuck_after_seconds, dict(gaps.groups), dict(gaps.open)
    )
    early = of_boundary(happened.runs, is_before_any=True)
    merge.answer_waiting(early)
    partition_commits = merge.pass_boundaries(known, early) if happened.boundaries else {}
    merge.close_passed()
    return MergedGaps(
        PartitionGaps(merge.clock.end_seconds, merge.groups, merge.open),
        tuple(merge.closed),
        frozenset(merge.touched),
        partition_commits,
    )


@dataclass(slots=True)
class _Merge:
    """A batch on its way into the gaps of one lane."""

    happened: Happened
    clock: Clock
    stuck_after_seconds: int
    groups: dict[bytes, GroupGaps]
    open: dict[bytes, OpenGap]
    closed: list[CommitGap] = field(default_factory=list)
    touched: set[bytes] = field(default_factory=set)

    def answer_waiting(self, runs: pa.Table) -> None:
        """Let runs answer gaps that were open before the batch."""
        if not self.open or not runs.num_rows:
            return
        by_group: dict[bytes, list[FirstCommit]] = {}
        for answer in _first_commits(runs.filter(pa.array(self._is_waited_for(runs)))):
            by_group.setdefault(group_of(answer.key), []).append(self._seen(answer))
        for group, answers in by_group.items():
            self._answer(group, answers)

    def _is_waited_for(self, runs: pa.Table) -> BoolArray:
        """Which rows a gap waits for: of a key that is silent so far, or of a group that is."""
        keys = runs["key"].combine_chunks()
        pending = [key for gap in self.open.values() for key in gap.pending]
        silent = [group for group, gap in self.open.items() if gap.first is None]
        is_pending = pc.is_in(keys, value_set=pa.array(pending, keys.type)).to_numpy(zero_copy_only=False)
        waited_for: BoolArray = is_pending | (group_numbers(keys, silent) >= 0)
        return waited_for

    def pass_boundaries(self, known: pa.Table, early: pa.Table) -> Mapping[bytes, PartitionCommits]:
        """Go through the boundaries of each group, and what was committed between them."""
        boundaries: dict[bytes, list[Boundary]] = {}
        for boundary in self.happened.boundaries:
            boundaries.setdefault(boundary.group, []).append(boundary)
        groups = list(boundaries)
        partition_commits = _partition_commits_by_group(known, groups)
        for group, row in _rows_by_group(early, groups):
            _stand(partition_commits.setdefault(group, {}), row)
        between: dict[bytes, dict[int, list[_Run]]] = {}
        for group, row in _rows_by_group(of_boundary(self.happened.runs, is_before_any=False), groups):
            between.setdefault(group, {}).setdefault(row.boundary_offset, []).append(row)
        for group, of_group in boundaries.items():
            partitions = partition_commits.setdefault(group, {})
            for boundary in of_group:
                self._pass(boundary, partitions)
                rows = between.get(group, {}).get(boundary.offsets_topic_offset, [])
                self._answer(group, [self._seen(row.answer) for row in rows])
                for row in rows:
                    _stand(partitions, row)
        return {key: commits for partitions in partition_commits.values() for key, commits in partitions.items()}

    def _pass(self, boundary: Boundary, partitions: dict[bytes, PartitionCommits]) -> None:
        """One boundary: rules 1, 2 and 4."""
        group, generation_id = boundary.group, boundary.generation_id
        known = self.groups.get(group)
        if known is not None and known.generation_id == generation_id:
            return
        missing_below = max(self.happened.missing_before, boundary.missing_below)
        self._close_at(boundary, missing_below)
        if generation_id is None:
            if self.groups.pop(group, None) is not None:
                self.touched.add(group)
            return
        self._open(boundary, missing_below, partitions)
        for key, commits in partitions.items():
            partitions[key] = commits._replace(run_first_ms=-1, run_commits=0)

    def _open(self, boundary: Boundary, missing_below: int, partitions: Mapping[bytes, PartitionCommits]) -> None:
        group, group_id, generation_id = boundary.group, boundary.group_id, boundary.generation_id or 0
        known = self.groups.get(group)
        gap = self.open[group] = opened(
            group_id,
            Position(self.happened.offsets_topic_partition, boundary.offsets_topic_offset, boundary.timestamp_ms),
            generation_id,
            self.clock.seconds_at(boundary.offsets_topic_offset) + self.stuck_after_seconds,
            missing_below,
            partitions,
            known.since_offset if known else None,
        )
        totals = known.totals if known else GapTotals()
        self.groups[group] = GroupGaps(group_id, generation_id, boundary.offsets_topic_offset, totals)
        if not gap.pending:
            self._close(group, NOTHING_BEFORE, missing_below)

    def _close_at(self, boundary: Boundary, missing_below: int) -> None:
        if (gap := self.open.get(boundary.group)) is None:
            return
        passed = self.clock.first_after(gap.closes_after_seconds)
        if passed is not None and passed[0] <= boundary.offsets_topic_offset:
            self._close(boundary.group, ROUND_PASSED, max(self.happened.missing_before, passed[1]))
        else:
            closed_by = GROUP_DELETED if boundary.generation_id is None else NEXT_REBALANCE
            self._close(boundary.group, closed_by, missing_below)

    def _answer(self, group: bytes, answers: Sequence[FirstCommit]) -> None:
        gap = self.open.get(group)
        if gap is None or not answers:
            return
        passed = self.clock.first_after(gap.closes_after_seconds)
        gap = self.open[group] = answered(gap, answers, passed[0] if passed else None)
        if not gap.pending:
            self._close(group, ALL_COMMITTED, -1)

    def _seen(self, answer: FirstCommit) -> FirstCommit:
        """The answer with what was missing before the batch."""
        return answer._replace(first_missing=max(answer.first_missing, self.happened.missing_before))

    def close_passed(self) -> None:
        """Close what a round has passed over."""
        over = [group for group, gap in self.open.items() if self.clock.end_seconds > gap.closes_after_seconds]
        for group in over:
            if (passed := self.clock.first_after(self.open[group].closes_after_seconds)) is not None:
                self._close(group, ROUND_PASSED, max(self.happened.missing_before, passed[1]))

    def _close(self, group: bytes, closed_by: str, missing_below: int) -> None:
        gap = closed(self.open.pop(group), closed_by, missing_below)
        self.closed.append(gap)
        if (known := self.groups.get(group)) is not None:
            self.groups[group] = msgspec.structs.replace(known, totals=counted(known.totals, gap))
            self.touched.add(group)


@dataclass(frozen=True, slots=True)
class _Run:
    """A row of RUN_SCHEMA of a group that has a boundary in the batch."""

    answer: FirstCommit
    boundary_offset: int
    commits: PartitionCommits


def _first_commits(runs: pa.Table) -> Iterator[FirstCommit]:
    names = ("key", "first_offset", "first_ms", "first_missing", "dropped_offset")
    return (FirstCommit(*row) for row in zip(*(runs[name].to_pylist() for name in names), strict=True))


def _of_groups(table: pa.Table, groups: Sequence[bytes]) -> Iterator[tuple[bytes, int]]:
    """Group and row of the rows whose key is of one of the groups."""
    number = group_numbers(table["key"].combine_chunks(), groups)
    return ((groups[number[row]], int(row)) for row in np.flatnonzero(number >= 0))


def _rows_by_group(runs: pa.Table, groups: Sequence[bytes]) -> Iterator[tuple[bytes, _Run]]:
    found = list(_of_groups(runs, groups))
    own = runs.take(pa.array([row for _, row in found], pa.int64()))
    partition_commits = _partition_commits(own, ("last_offset", "last_ms", "run_first_ms", "run_commits"))
    rows = zip(found, _first_commits(own), own["boundary_offset"].to_pylist(), partition_commits, strict=True)
    return ((group, _Run(answer, boundary_offset, commits)) for (group, _), answer, boundary_offset, commits in rows)


def _partition_commits_by_group(known: pa.Table, groups: Sequence[bytes]) -> dict[bytes, dict[bytes, PartitionCommits]]:
    found = list(_of_groups(known, groups))
    own = known.take(pa.array([row for _, row in found], pa.int64()))
    partition_commits = _partition_commits(own, ("offsets_topic_offset", "timestamp_ms", "run_first_ms", "run_commits"))
    by_group: dict[bytes, dict[bytes, PartitionCommits]] = {}
    for (group, _), key, commits in zip(found, own["key"].to_pylist(), partition_commits, strict=True):
        by_group.setdefault(group, {})[key] = commits
    return by_group


def _partition_commits(table: pa.Table, names: Iterable[str]) -> list[PartitionCommits]:
    return [PartitionCommits(*row) for row in zip(*(table[name].to_pylist() for name in names), strict=True)]


def _stand(partitions: dict[bytes, PartitionCommits], run: _Run) -> None:
    """A partition after a run: gone if its commit was deleted last; one that was deleted meanwhile begins anew."""
    key, last = run.answer.key, run.commits
    if last.last_offset < 0:
        partitions.pop(key, None)
        return
    before = partitions.get(key)
    if before is not None and before.run_commits and run.answer.dropped_offset < 0:
        last = last._replace(run_first_ms=before.run_first_ms, run_commits=before.run_commits + last.run_commits)
    partitions[key] = last
