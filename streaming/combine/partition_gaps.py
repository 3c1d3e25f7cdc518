"""Updates the commit gaps of the groups in one `__consumer_offsets` partition. The rules are in the module `gaps`.

The commits of most groups are processed as whole columns. A group is processed separately if the batch contains a
boundary of the group, or a commit that can change the group's open gap.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.big_endian import BoolArray
from streaming.combine.commit_runs import select_runs
from streaming.combine.gaps import (
    ALL_COMMITTED,
    GROUP_DELETED,
    NEXT_REBALANCE,
    NOTHING_BEFORE,
    ROUND_PASSED,
    CommitGap,
    FirstCommit,
    GapTotals,
    LastCommit,
    OpenGap,
    PartitionCommits,
    add_first_commits,
    add_to_totals,
    close_gap,
    usual_interval_ms,
)
from streaming.combine.group_boundaries import Boundary, Clock, MembershipChange, group_bytes, group_numbers
from streaming.events import Position


class GroupGaps(msgspec.Struct, frozen=True):
    """The state of a group: its last boundary with a new generation (at `since_offset`), and the totals of its gaps."""

    group_id: str
    generation_id: int
    since_offset: int
    totals: GapTotals = GapTotals()


class PartitionGaps(msgspec.Struct, frozen=True):
    """The state of one partition: its clock, and for each group (`group_bytes`) the last boundary and the open gap."""

    clock_seconds: int = -1
    groups: dict[bytes, GroupGaps] = {}
    open: dict[bytes, OpenGap] = {}


@dataclass(frozen=True, slots=True)
class GapInputs:
    """The inputs from one batch, for the gaps of one partition. Boundaries and changes are in log order.

    `runs` has RUN_SCHEMA. `clock` is a result of `encode_steps`. `missing_before` is the highest missing offset before
    the batch, or -1.
    """

    offsets_topic_partition: int
    boundaries: Sequence[Boundary]
    membership_changes: Sequence[MembershipChange]
    runs: pa.Table
    clock: bytes
    missing_before: int


@dataclass(frozen=True, slots=True)
class MergedGaps:
    """The gaps of a partition after a batch, and what the batch changed.

    `changed_groups` contains the groups with new totals, and the groups that ended. `partition_commits` contains the
    live commits by key, for the groups with a boundary in the batch.
    """

    gaps: PartitionGaps
    closed: tuple[CommitGap, ...]
    changed_groups: frozenset[bytes]
    partition_commits: Mapping[bytes, PartitionCommits]


def merge_gaps(gaps: PartitionGaps, known: pa.Table, inputs: GapInputs, stuck_after_seconds: int) -> MergedGaps:
    """Apply a batch to the gaps. `known` has the live commits before the batch (`partition_state.LIVE_SCHEMA`)."""
    merger = _GapMerger(
        inputs, Clock(gaps.clock_seconds, inputs.clock), stuck_after_seconds, dict(gaps.groups), dict(gaps.open)
    )
    merger.apply_membership_changes()
    early = select_runs(inputs.runs, is_before_any=True)
    merger.apply_to_open_gaps(early)
    partition_commits = merger.apply_boundaries(known, early) if inputs.boundaries else {}
    merger.close_timed_out()
    return MergedGaps(
        PartitionGaps(merger.clock.end_seconds, merger.groups, merger.open),
        tuple(merger.closed),
        frozenset(merger.changed_groups),
        partition_commits,
    )


@dataclass(slots=True)
class _GapMerger:
    inputs: GapInputs
    clock: Clock
    stuck_after_seconds: int
    groups: dict[bytes, GroupGaps]
    open: dict[bytes, OpenGap]
    closed: list[CommitGap] = field(default_factory=list)
    changed_groups: set[bytes] = field(default_factory=set)
    changed_offsets: dict[bytes, list[int]] = field(default_factory=dict)
    """The offsets of each group's membership changes in the batch, in log order."""

    def apply_membership_changes(self) -> None:
        """Collect the membership changes. Add the first change of a group to its open gap, if the gap has none yet."""
        for change in self.inputs.membership_changes:
            self.changed_offsets.setdefault(change.group, []).append(change.offsets_topic_offset)
        for group, offsets in self.changed_offsets.items():
            gap = self.open.get(group)
            if gap is not None and gap.changed_offset < 0:
                self.open[group] = msgspec.structs.replace(gap, changed_offset=offsets[0])

    def apply_to_open_gaps(self, runs: pa.Table) -> None:
        """Apply runs to the gaps that were open before the batch."""
        if not self.open or not runs.num_rows:
            return
        by_group: dict[bytes, list[FirstCommit]] = {}
        for first_commit in _first_commits(runs.filter(pa.array(self._is_pending(runs)))):
            by_group.setdefault(group_bytes(first_commit.key), []).append(self._with_earlier_missing(first_commit))
        for group, first_commits in by_group.items():
            self._add_first_commits(group, first_commits)

    def _is_pending(self, runs: pa.Table) -> BoolArray:
        """Mark the rows that can change an open gap: rows of pending keys, and all rows before the first commit."""
        keys = runs["key"].combine_chunks()
        pending = [key for gap in self.open.values() for key in gap.pending]
        silent = [group for group, gap in self.open.items() if gap.first is None]
        is_pending = pc.is_in(keys, value_set=pa.array(pending, keys.type)).to_numpy(zero_copy_only=False)
        is_awaited: BoolArray = is_pending | (group_numbers(keys, silent) >= 0)
        return is_awaited

    def apply_boundaries(self, known: pa.Table, early: pa.Table) -> Mapping[bytes, PartitionCommits]:
        """Apply the boundaries and the commits between them. Return the commits after the last boundary."""
        boundaries: dict[bytes, list[Boundary]] = {}
        for boundary in self.inputs.boundaries:
            boundaries.setdefault(boundary.group, []).append(boundary)
        groups = list(boundaries)
        partition_commits = _partition_commits_by_group(known, groups)
        for group, row in _rows_by_group(early, groups):
            _apply_run(partition_commits.setdefault(group, {}), row)
        between: dict[bytes, dict[int, list[_Run]]] = {}
        for group, row in _rows_by_group(select_runs(self.inputs.runs, is_before_any=False), groups):
            between.setdefault(group, {}).setdefault(row.boundary_offset, []).append(row)
        for group, of_group in boundaries.items():
            partitions = partition_commits.setdefault(group, {})
            for boundary in of_group:
                self._apply_boundary(boundary, partitions)
                rows = between.get(group, {}).get(boundary.offsets_topic_offset, [])
                self._add_first_commits(group, [self._with_earlier_missing(row.first_commit) for row in rows])
                for row in rows:
                    _apply_run(partitions, row)
        return {key: commits for partitions in partition_commits.values() for key, commits in partitions.items()}

    def _apply_boundary(self, boundary: Boundary, partitions: dict[bytes, PartitionCommits]) -> None:
        group, generation_id = boundary.group, boundary.generation_id
        known = self.groups.get(group)
        if known is not None and known.generation_id == generation_id:
            return
        missing_below = max(self.inputs.missing_before, boundary.missing_below)
        self._close_at(boundary, missing_below)
        if generation_id is None:
            if self.groups.pop(group, None) is not None:
                self.changed_groups.add(group)
            return
        self._open(boundary, missing_below, partitions)
        for key, commits in partitions.items():
            partitions[key] = commits._replace(run_first_ms=-1, run_commits=0)

    def _open(self, boundary: Boundary, missing_below: int, partitions: Mapping[bytes, PartitionCommits]) -> None:
        group, group_id, generation_id = boundary.group, boundary.group_id, boundary.generation_id or 0
        known, offset = self.groups.get(group), boundary.offsets_topic_offset
        is_generation_complete = known is not None and missing_below <= known.since_offset
        changes = self.changed_offsets.get(group, [])
        at = bisect_right(changes, offset)
        pending = {key: LastCommit(*commits[:3]) for key, commits in partitions.items()}
        self.open[group] = OpenGap(
            group_id=group_id,
            position=Position(self.inputs.offsets_topic_partition, offset, boundary.timestamp_ms),
            generation_id=generation_id,
            closes_after_seconds=self.clock.seconds_at(offset) + self.stuck_after_seconds,
            missing_below=missing_below,
            before=max(pending.values(), default=None),
            pending=pending,
            usual_interval_ms=usual_interval_ms(partitions.values()) if is_generation_complete else None,
            changed_offset=changes[at] if at < len(changes) else -1,
        )
        self.groups[group] = GroupGaps(group_id, generation_id, offset, known.totals if known else GapTotals())
        if not pending:
            self._close(group, NOTHING_BEFORE, missing_below)

    def _close_at(self, boundary: Boundary, missing_below: int) -> None:
        if (gap := self.open.get(boundary.group)) is None:
            return
        passed = self.clock.first_after(gap.closes_after_seconds)
        if passed is not None and passed[0] <= boundary.offsets_topic_offset:
            self._close(boundary.group, ROUND_PASSED, max(self.inputs.missing_before, passed[1]))
        else:
            closed_by = GROUP_DELETED if boundary.generation_id is None else NEXT_REBALANCE
            self._close(boundary.group, closed_by, missing_below)

    def _add_first_commits(self, group: bytes, first_commits: Sequence[FirstCommit]) -> None:
        gap = self.open.get(group)
        if gap is None or not first_commits:
            return
        passed = self.clock.first_after(gap.closes_after_seconds)
        gap = self.open[group] = add_first_commits(gap, first_commits, passed[0] if passed else None)
        if not gap.pending:
            self._close(group, ALL_COMMITTED, -1)

    def _with_earlier_missing(self, first_commit: FirstCommit) -> FirstCommit:
        return first_commit._replace(first_missing=max(first_commit.first_missing, self.inputs.missing_before))

    def close_timed_out(self) -> None:
        """Close the gaps that have been open for more than `stuck_after_seconds`."""
        end_seconds = self.clock.end_seconds
        for group, gap in list(self.open.items()):
            if end_seconds > gap.closes_after_seconds and (passed := self.clock.first_after(gap.closes_after_seconds)):
                self._close(group, ROUND_PASSED, max(self.inputs.missing_before, passed[1]))

    def _close(self, group: bytes, closed_by: str, missing_below: int) -> None:
        gap = close_gap(self.open.pop(group), closed_by, missing_below)
        self.closed.append(gap)
        if (known := self.groups.get(group)) is not None:
            self.groups[group] = msgspec.structs.replace(known, totals=add_to_totals(known.totals, gap))
            self.changed_groups.add(group)


@dataclass(frozen=True, slots=True)
class _Run:
    """A row of RUN_SCHEMA whose group has a boundary in the batch."""

    first_commit: FirstCommit
    boundary_offset: int
    commits: PartitionCommits


def _first_commits(runs: pa.Table) -> Iterator[FirstCommit]:
    names = ("key", "first_offset", "first_ms", "first_committed", "first_missing", "dropped_offset")
    return (FirstCommit(*row) for row in zip(*(runs[name].to_pylist() for name in names), strict=True))


def _of_groups(table: pa.Table, groups: Sequence[bytes]) -> Iterator[tuple[bytes, int]]:
    """Return (group, row number) for each row whose key belongs to one of the groups."""
    number = group_numbers(table["key"].combine_chunks(), groups)
    return ((groups[number[row]], int(row)) for row in np.flatnonzero(number >= 0))


def _rows_by_group(runs: pa.Table, groups: Sequence[bytes]) -> Iterator[tuple[bytes, _Run]]:
    found = list(_of_groups(runs, groups))
    own = runs.take(pa.array([row for _, row in found], pa.int64()))
    partition_commits = _partition_commits(own, PartitionCommits._fields)
    rows = zip(found, _first_commits(own), own["boundary_offset"].to_pylist(), partition_commits, strict=True)
    return (
        (group, _Run(first_commit, boundary_offset, commits))
        for (group, _), first_commit, boundary_offset, commits in rows
    )


def _partition_commits_by_group(known: pa.Table, groups: Sequence[bytes]) -> dict[bytes, dict[bytes, PartitionCommits]]:
    found = list(_of_groups(known, groups))
    own = known.take(pa.array([row for _, row in found], pa.int64()))
    partition_commits = _partition_commits(
        own, ("offsets_topic_offset", "timestamp_ms", "committed_offset", "run_first_ms", "run_commits")
    )
    by_group: dict[bytes, dict[bytes, PartitionCommits]] = {}
    for (group, _), key, commits in zip(found, own["key"].to_pylist(), partition_commits, strict=True):
        by_group.setdefault(group, {})[key] = commits
    return by_group


def _partition_commits(table: pa.Table, names: Iterable[str]) -> list[PartitionCommits]:
    return [PartitionCommits(*row) for row in zip(*(table[name].to_pylist() for name in names), strict=True)]


def _apply_run(partitions: dict[bytes, PartitionCommits], run: _Run) -> None:
    """Apply a run to the commits of its partition. After a tombstone, the counts start again from 0."""
    key, last = run.first_commit.key, run.commits
    if last.last_offset < 0:
        partitions.pop(key, None)
        return
    before = partitions.get(key)
    if before is not None and before.run_commits and run.first_commit.dropped_offset < 0:
        last = last._replace(run_first_ms=before.run_first_ms, run_commits=before.run_commits + last.run_commits)
    partitions[key] = last
