"""Updates the commit gaps of the groups in one `__consumer_offsets` partition. The rules are in the module `gaps`.

The commits of most groups are processed as whole columns. A group is processed separately if the batch contains a
boundary of the group (`group_commits`), or a commit that can change the group's open gap.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
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
    OpenGap,
    PartitionCommits,
    add_first_commits,
    add_to_totals,
    close_gap,
)
from streaming.combine.group_boundaries import Boundary, Clock, MembershipChange, group_bytes, group_numbers
from streaming.combine.group_commits import LiveCommits, Run, commits_by_group, first_commits_of, runs_by_group
from streaming.events import Position


class GroupGaps(msgspec.Struct, frozen=True):
    """The state of a group: its last boundary with a new generation (at `since_offset`), and the totals of its gaps."""

    group_id: str
    generation_id: int
    since_offset: int
    totals: GapTotals = GapTotals()


class EndedGroup(msgspec.Struct, frozen=True):
    """A group after its tombstone, until it is known whether the group was deleted (`gaps`, rule 10).

    `gap` is the gap that the tombstone closed, or None. `clock_seconds` is the partition's clock at the tombstone.
    """

    group: GroupGaps
    gap: CommitGap | None
    timestamp_ms: int
    clock_seconds: int


class PartitionGaps(msgspec.Struct, frozen=True):
    """The state of one partition: its clock, and for each group (`group_bytes`) its last boundary, gap and end."""

    clock_seconds: int = -1
    groups: dict[bytes, GroupGaps] = {}
    open: dict[bytes, OpenGap] = {}
    ended: dict[bytes, EndedGroup] = {}


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
        inputs,
        Clock(gaps.clock_seconds, inputs.clock),
        stuck_after_seconds,
        dict(gaps.groups),
        dict(gaps.open),
        dict(gaps.ended),
    )
    merger.apply_membership_changes()
    early = select_runs(inputs.runs, is_before_any=True)
    merger.apply_to_open_gaps(early)
    partition_commits = merger.apply_boundaries(known, early) if inputs.boundaries else {}
    merger.close_timed_out()
    return MergedGaps(
        PartitionGaps(merger.clock.end_seconds, merger.groups, merger.open, merger.ended),
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
    ended: dict[bytes, EndedGroup]
    closed: list[CommitGap] = field(default_factory=list)
    changed_groups: set[bytes] = field(default_factory=set)
    changed_offsets: dict[bytes, list[int]] = field(default_factory=dict)
    """The offsets of each group's membership changes in the batch, in log order."""
    omitted_partitions: dict[bytes, int] = field(default_factory=dict)
    """For each open gap of this batch: the number of partitions that `pending` omits (`LiveCommits.pending_of`)."""

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
        for first_commit in first_commits_of(runs.filter(pa.array(self._is_pending(runs)))):
            by_group.setdefault(group_bytes(first_commit.key), []).append(self._with_earlier_missing(first_commit))
        for group, of_group in by_group.items():
            self._add_first_commits(group, of_group)

    def _is_pending(self, runs: pa.Table) -> BoolArray:
        """Mark rows that can change an open gap: rows of pending keys, and rows of groups without a first commit."""
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
        commits = commits_by_group(known, groups)
        for group, runs in runs_by_group(early, groups).items():
            for run in runs:
                commits[group].add(run)
        later = runs_by_group(select_runs(self.inputs.runs, is_before_any=False), groups)
        for group, of_group in boundaries.items():
            steps = self._steps(of_group, later.get(group, ()))
            for number, (step, runs) in enumerate(steps, start=1):
                if step is not None:
                    self._apply_boundary(step, commits[group], None if number == len(steps) else runs)
                self._add_first_commits(group, [self._with_earlier_missing(run.first_commit) for run in runs])
                for run in runs:
                    commits[group].add(run)
        return {key: last for of_group in commits.values() for key, last in of_group.partition_commits().items()}

    def _steps(self, boundaries: Sequence[Boundary], runs: Sequence[Run]) -> list[tuple[Boundary | None, list[Run]]]:
        """For one group, return the tombstones and the boundaries with a new generation, each with the runs after it.

        The first step has no boundary. It contains the runs of the generation that the group had before the batch.
        """
        by_boundary: dict[int, list[Run]] = {}
        for run in runs:
            by_boundary.setdefault(run.boundary_offset, []).append(run)
        known = self.groups.get(boundaries[0].group)
        generation_id = known.generation_id if known else None
        steps: list[tuple[Boundary | None, list[Run]]] = [(None, [])]
        for boundary in boundaries:
            if boundary.generation_id is None or boundary.generation_id != generation_id:
                steps.append((boundary, []))
                generation_id = boundary.generation_id
            steps[-1][1].extend(by_boundary.get(boundary.offsets_topic_offset, ()))
        return steps

    def _apply_boundary(self, boundary: Boundary, commits: LiveCommits, runs_until_next: Sequence[Run] | None) -> None:
        """Apply a boundary.

        `runs_until_next` has the runs until the next boundary, or is None if the batch has no later boundary.
        """
        missing_below = max(self.inputs.missing_before, boundary.missing_below)
        if boundary.generation_id is not None:
            self._resolve_ended(boundary)
        self._close_at(boundary, missing_below)
        if boundary.generation_id is None:
            self._end(boundary, missing_below)
            return
        self._open(boundary, boundary.generation_id, missing_below, commits, runs_until_next)
        commits.start_generation()

    def _open(
        self,
        boundary: Boundary,
        generation_id: int,
        missing_below: int,
        commits: LiveCommits,
        runs_until_next: Sequence[Run] | None,
    ) -> None:
        group, group_id = boundary.group, boundary.group_id
        known, offset = self.groups.get(group), boundary.offsets_topic_offset
        is_generation_complete = known is not None and missing_below <= known.since_offset
        changes = self.changed_offsets.get(group, [])
        at = bisect_right(changes, offset)
        pending, omitted = (
            (commits.all_pending(), 0) if runs_until_next is None else commits.pending_of(runs_until_next)
        )
        self.open[group] = OpenGap(
            group_id=group_id,
            position=Position(self.inputs.offsets_topic_partition, offset, boundary.timestamp_ms),
            generation_id=generation_id,
            closes_after_seconds=self.clock.seconds_at(offset) + self.stuck_after_seconds,
            missing_below=missing_below,
            before=commits.newest(),
            pending=pending,
            usual_interval_ms=commits.usual_interval_ms() if is_generation_complete else None,
            changed_offset=changes[at] if at < len(changes) else -1,
        )
        self.omitted_partitions[group] = omitted
        self.groups[group] = GroupGaps(group_id, generation_id, offset, known.totals if known else GapTotals())
        if not pending:
            self._close(group, NOTHING_BEFORE, missing_below)

    def _close_at(self, boundary: Boundary, missing_below: int) -> None:
        """Close the open gap of the group. If the boundary is a tombstone, close only a gap that has timed out."""
        if (gap := self.open.get(boundary.group)) is None:
            return
        passed = self.clock.first_after(gap.closes_after_seconds)
        if passed is not None and passed[0] <= boundary.offsets_topic_offset:
            self._close(boundary.group, ROUND_PASSED, max(self.inputs.missing_before, passed[1]))
        elif boundary.generation_id is not None:
            self._close(boundary.group, NEXT_REBALANCE, missing_below)

    def _end(self, tombstone: Boundary, missing_below: int) -> None:
        """End a group. The row of its gap waits until it is known whether the group was deleted (rule 10)."""
        group = tombstone.group
        gap = self._without_open(group, GROUP_DELETED, missing_below) if group in self.open else None
        if (known := self.groups.pop(group, None)) is not None:
            clock_seconds = self.clock.seconds_at(tombstone.offsets_topic_offset)
            self.ended[group] = EndedGroup(known, gap, tombstone.timestamp_ms, clock_seconds)
            self.changed_groups.add(group)

    def _resolve_ended(self, boundary: Boundary) -> None:
        """Decide whether the group was deleted before this boundary, or continues with a different type (rule 10)."""
        if (ended := self.ended.pop(boundary.group, None)) is None:
            return
        clock_seconds = self.clock.seconds_at(boundary.offsets_topic_offset)
        if (ended.timestamp_ms, ended.clock_seconds) != (boundary.timestamp_ms, clock_seconds):
            self.closed += [ended.gap] if ended.gap else []
            return
        self.groups[boundary.group] = ended.group
        self.changed_groups.add(boundary.group)
        if ended.gap is not None:
            self._add_closed(boundary.group, msgspec.structs.replace(ended.gap, closed_by=NEXT_REBALANCE))

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
        """Close the gaps that have been open for more than `stuck_after_seconds`. Forget the deleted groups."""
        end_seconds = self.clock.end_seconds
        for group, gap in list(self.open.items()):
            if end_seconds > gap.closes_after_seconds and (passed := self.clock.first_after(gap.closes_after_seconds)):
                self._close(group, ROUND_PASSED, max(self.inputs.missing_before, passed[1]))
        for group, ended in list(self.ended.items()):
            if end_seconds > ended.clock_seconds:
                del self.ended[group]
                self.closed += [ended.gap] if ended.gap else []

    def _close(self, group: bytes, closed_by: str, missing_below: int) -> None:
        self._add_closed(group, self._without_open(group, closed_by, missing_below))

    def _without_open(self, group: bytes, closed_by: str, missing_below: int) -> CommitGap:
        """Remove the open gap of a group, and return it as a closed gap."""
        omitted = self.omitted_partitions.pop(group, 0)
        return close_gap(self.open.pop(group), closed_by, missing_below, omitted)

    def _add_closed(self, group: bytes, gap: CommitGap) -> None:
        self.closed.append(gap)
        if (known := self.groups.get(group)) is not None:
            self.groups[group] = msgspec.structs.replace(known, totals=add_to_totals(known.totals, gap))
            self.changed_groups.add(group)
