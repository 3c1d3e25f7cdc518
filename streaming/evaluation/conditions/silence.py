"""Find groups that hang, and static members that hang.

No record shows that a group or a member hangs, and the coordinator writes no record during a rebalance. So the monitor
finds hanging groups and members from listings and from missing commits. The rule numbers continue after those of
`condition_detectors.py`. "Now" is defined in rule 1 of `condition_tracker.py`.

10. The records of a partition *wait* if three requirements are met. First: the oldest unread record was written more
    than `stuck_after_seconds` ago. Second: more than `allowed_lag` records are unread. Third: the end offset grew
    within the last `stuck_after_seconds`. A record that an open transaction blocks for read_committed consumers
    (`is_blocked`) does not wait. If the group has never committed the partition, a record waits only if it was written
    after the present owner got the partition.
11. A group is *silent* if four requirements are met. First: the group has members. Second: the group has committed
    offsets at least once. Third: the records of at least one partition wait. Fourth: the group's last commit is older
    than `stuck_after_seconds`. If the monitor cannot check a requirement, or if a complete listing does not contain the
    group, it is unknown whether the group is silent. If a listing shows the state Empty, the group has no members. A
    silent group stays silent until it commits or until its records no longer meet the first two requirements of rule
    10. If the third requirement also counted, the condition of a hanging group would end again and again on a topic
    that gets one record per ten minutes.
12. `stuck_rebalance`: listings have shown the group in a rebalance for longer than `stuck_after_seconds`. The
    coordinator wrote no record of the group during the rebalance. If the last listing does not contain the group, it is
    unknown whether the rebalance continues. For a silent group, `stuck_rebalance` is also active if the last listing
    shows a rebalance, or does not show the state of the group. After a restart, the monitor does not know the listings
    from before the restart. So if the coordinator has written no record since the start of the condition, and a listing
    still shows a rebalance, the condition is unknown until `stuck_after_seconds` have passed again.
13. `silent_group`: the group is silent, and the last listing shows that the group is not in a rebalance. There are
    three possible causes: the members process records very slowly, hang, or do not commit.
14. `silent_static_member`: three requirements are met. First: for longer than `stuck_after_seconds`, a static member
    has owned partitions and has not committed them. Second: records wait in at least one of these partitions. Third:
    during this time, a different member of the group has committed offsets. There are two possible causes: the member's
    group instance id was fenced, or the member hangs. If the whole group is silent, the condition
    `silent_static_member` is not active.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignors import TopicPartition
from streaming.combine.big_endian import BoolArray, Int64Array
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.lag.lag_seconds import AT_LEAST, lowest_end_offset_since
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.group.members import TopicPartitions
from streaming.group.snapshot import REBALANCING

STUCK_REBALANCE = "stuck_rebalance"
SILENT_GROUP = "silent_group"
SILENT_STATIC_MEMBER = "silent_static_member"


@dataclass(frozen=True, slots=True)
class GroupCommits:
    """The commits of a group.

    `partitions` is the number of committed partitions. `wait` is True if records wait, and None if unknown.
    `wait_seconds` is the known age of the oldest unread record, or 0 if no record waits. Records that an open
    transaction blocks do not count. If `wait` is None, the oldest unread record may be older than `wait_seconds`.
    """

    last_ms: int
    partitions: int
    wait: bool | None
    wait_seconds: float = 0.0


def is_silent(
    members: int, commits: GroupCommits | None, now_ms: int, limits: Limits, *, was_silent: bool = False
) -> bool | None:
    """Return True if the group is silent (rule 11), or None if unknown.

    `was_silent` is True if the group was silent at the previous sample.

    >>> is_silent(3, GroupCommits(last_ms=0, partitions=1, wait=True), 600_000, Limits())
    True
    >>> is_silent(3, GroupCommits(last_ms=0, partitions=1, wait=False), 600_000, Limits())
    False
    """
    if not members:
        return False
    if commits is None:
        return None
    if now_ms - commits.last_ms <= 1000 * limits.stuck_after_seconds:
        return False
    if was_silent and commits.wait_seconds > limits.stuck_after_seconds:
        return True
    return commits.wait


def silence_condition(
    silent: bool | None, listed_state: str | None, rebalancing_ms: int | None, limits: Limits
) -> str | None:
    """Return the name of the active condition, or None if no condition is active (rules 12 and 13).

    `listed_state` is None if the listing does not show the state. `rebalancing_ms` is the time for which listings have
    shown the group in a rebalance.

    >>> silence_condition(True, None, None, Limits()), silence_condition(True, "Stable", None, Limits())
    ('stuck_rebalance', 'silent_group')
    """
    if rebalancing_ms is not None and rebalancing_ms > 1000 * limits.stuck_after_seconds:
        return STUCK_REBALANCE
    if not silent:
        return None
    return STUCK_REBALANCE if listed_state is None or listed_state in REBALANCING else SILENT_GROUP


@dataclass(frozen=True, slots=True)
class OwnedPartitions:
    """The partitions that a group's static members have had at least since `since_ms`, by group instance id."""

    of_member: Mapping[str, TopicPartitions]
    since_ms: int


@dataclass(frozen=True, slots=True)
class PartitionCommits:
    """The last commit time of each partition of a group, and the partitions in which records wait."""

    last_ms: Mapping[TopicPartition, int]
    waiting: Collection[TopicPartition]


def silent_static_owners(
    owned: OwnedPartitions, commits: PartitionCommits, now_ms: int, limits: Limits
) -> tuple[str, ...]:
    """Return the group instance ids of the silent static members (rule 14).

    >>> owned = OwnedPartitions({"pod-0": (("t", 0),), "pod-1": (("t", 1),)}, since_ms=20)
    >>> commits = PartitionCommits({("t", 0): 10, ("t", 1): 900_000}, {("t", 0), ("t", 1)})
    >>> silent_static_owners(owned, commits, 900_000, Limits())
    ('pod-0',)
    """
    silent_since_ms = now_ms - 1000 * limits.stuck_after_seconds
    latest_ms = max(commits.last_ms.values(), default=owned.since_ms)
    if owned.since_ms > silent_since_ms or latest_ms <= silent_since_ms:
        return ()

    def is_silent_owner(partitions: TopicPartitions) -> bool:
        last_ms = max((commits.last_ms.get(at, owned.since_ms) for at in partitions), default=owned.since_ms)
        return last_ms <= silent_since_ms and any(at in commits.waiting for at in partitions)

    return tuple(sorted(member for member, has in owned.of_member.items() if is_silent_owner(has)))


class Silence:
    """The commits of all groups at one sample, evaluated in whole columns.

    `ends` must contain the end offsets of this sample. `ahead_ms` is the time of the coordinator's clock minus the
    cluster's time, for each row of `lag`. "Now" and the times of records come from the coordinator's clock. So the
    results contain the times of commits by this clock.
    """

    def __init__(
        self, lag: LagEvaluation, ends: SampledOffsets, limits: Limits, ahead_ms: Int64Array | int = 0
    ) -> None:
        self._ends = ends
        self._partitions = lag.partitions
        self._commit_ms = pa.array(lag.partitions["commit_timestamp_ms"].to_numpy() + ahead_ms)
        self._since_ms = lag.report.sampled_at_ms - int(1000 * limits.stuck_after_seconds)
        self._waits, is_unknown = _waits(lag.partitions, ends, limits, self._since_ms)
        has_lag = pc.greater(lag.partitions["lag"], limits.allowed_lag)
        is_waiting = pc.and_(has_lag, pc.invert(lag.partitions["is_blocked"]))
        evaluated = (
            lag.partitions.select(["group_id"])
            .append_column("commit_ms", self._commit_ms)
            .append_column("waits", pa.array(self._waits))
            .append_column("unknown", pa.array(is_unknown))
            .append_column("seconds", pc.if_else(is_waiting, lag.partitions["lag_seconds"], None))
        )
        any_and_max = [("waits", "any"), ("unknown", "any"), ("commit_ms", "max"), ("seconds", "max")]
        self._groups = evaluated.group_by("group_id", use_threads=False).aggregate([*any_and_max, ([], "count_all")])

    def by_group(self) -> Mapping[str, GroupCommits]:
        """Return the commits of each group. Groups without commits are absent."""
        names = ("group_id", "commit_ms_max", "count_all", "waits_any", "unknown_any", "seconds_max")
        rows = zip(*(self._groups[name].to_pylist() for name in names), strict=True)
        return {
            group_id: GroupCommits(last_ms, partitions, True if waits else (None if unknown else False), seconds or 0.0)
            for group_id, last_ms, partitions, waits, unknown, seconds in rows
        }

    def groups_with_a_silent_partition(self) -> frozenset[str]:
        """Return the groups with a waiting partition whose last commit is older than `stuck_after_seconds`."""
        is_old = pc.less_equal(self._partitions["commit_timestamp_ms"], self._since_ms)
        silent = self._partitions["group_id"].filter(pc.and_(is_old, pa.array(self._waits)))
        return frozenset(pc.unique(silent).to_pylist())

    def of_groups(self, group_ids: Collection[str]) -> Mapping[str, PartitionCommits]:
        """Return the commits of each partition of the given groups. Groups without commits are absent."""
        wanted = pc.is_in(self._partitions["group_id"], value_set=pa.array(sorted(group_ids), pa.string()))
        names = ("group_id", "topic", "partition")
        columns = [self._partitions[name].filter(wanted).to_pylist() for name in names]
        columns.append(self._commit_ms.filter(wanted).to_pylist())
        waits = self._waits[wanted.to_numpy()].tolist() if group_ids else []
        by_group: dict[str, tuple[dict[TopicPartition, int], set[TopicPartition]]] = {}
        for group_id, topic, partition, last_ms, is_waiting in zip(*columns, waits, strict=True):
            last, waiting = by_group.setdefault(group_id, ({}, set()))
            last[topic, partition] = last_ms
            if is_waiting:
                waiting.add((topic, partition))
        return {group_id: PartitionCommits(last, waiting) for group_id, (last, waiting) in by_group.items()}

    def growing_rows(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Map each partition whose end offset grew in the last `stuck_after_seconds` to its row number in `ends`."""
        asked = sorted(partitions)
        topics = pa.array([topic for topic, _ in asked], pa.string())
        rows = self._ends.rows(topics, np.array([at for _, at in asked], dtype=np.int64))
        newest = self._ends.points.offsets[rows, np.maximum(self._ends.points.counts[rows] - 1, 0)]
        grows = _grew(self._ends, rows, newest, self._since_ms)
        return {at: row for at, row, grew in zip(asked, rows.tolist(), grows.tolist(), strict=True) if grew}

    def waits_since(self, row: int, owned_since_ms: int) -> bool:
        """Return True if records wait in a partition that the group has never committed (rule 10).

        A record counts only if it was written after `owned_since_ms`, and more than `stuck_after_seconds` ago.
        `owned_since_ms` is the cluster's time, like the times of the end offsets.
        """
        points = self._ends.points.of_row(row)
        before = [offset for offset, at_ms in points if owned_since_ms <= at_ms <= self._since_ms]
        return bool(before) and before[-1] > before[0]


class CommitsByPartition:
    """The commits of each partition of the groups with static members, found in one scan of all rows."""

    def __init__(self, silence: Silence, owned: Mapping[str, OwnedPartitions | None]) -> None:
        self._silence = silence
        self._committed = silence.of_groups([group_id for group_id, of_group in owned.items() if of_group])
        missing = (at for group_id, of_group in owned.items() if of_group for at in self._missing(group_id, of_group))
        self._growing = silence.growing_rows(set(missing))

    def of_group(self, group_id: str, owned: OwnedPartitions, ahead_ms: int = 0) -> PartitionCommits | None:
        """Return the group's commits, or None if the group has no commits.

        `waiting` also contains partitions in which records wait and that the group has never committed (rule 10).
        `ahead_ms` is the time of the coordinator's clock, which is the clock of `owned`, minus the cluster's time.
        """
        committed = self._committed.get(group_id)
        if committed is None:
            return None
        rows = {at: self._growing[at] for at in self._missing(group_id, owned) if at in self._growing}
        waiting = {at for at, row in rows.items() if self._silence.waits_since(row, owned.since_ms - ahead_ms)}
        return PartitionCommits(committed.last_ms, waiting.union(committed.waiting))

    def _missing(self, group_id: str, owned: OwnedPartitions) -> Iterator[TopicPartition]:
        committed = self._committed.get(group_id)
        if committed is not None:
            yield from (at for has in owned.of_member.values() for at in has if at not in committed.last_ms)


def _waits(partitions: pa.Table, ends: SampledOffsets, limits: Limits, since_ms: int) -> tuple[BoolArray, BoolArray]:
    """For each committed partition, return whether records wait (rule 10), and whether this is unknown."""
    records, seconds = partitions["lag"], partitions["lag_seconds"]
    is_none = pc.or_kleene(pc.less_equal(records, limits.allowed_lag), partitions["is_blocked"])
    is_long = pc.greater(seconds, limits.stuck_after_seconds)
    is_bound = pc.equal(partitions["lag_seconds_kind"].cast(pa.string()), AT_LEAST)
    is_open = pc.or_kleene(pc.is_null(seconds), pc.and_(is_bound, pc.invert(is_long)))
    is_unknown = pc.or_kleene(pc.is_null(records), pc.and_kleene(pc.invert(is_none), is_open))
    waits = _known(pc.and_(pc.invert(is_none), is_long))
    long_waiting = np.flatnonzero(waits)
    selected = partitions.select(["topic", "partition", "end_offset"]).take(pa.array(long_waiting))
    rows = ends.rows(selected["topic"].combine_chunks(), selected["partition"].to_numpy())
    waits[long_waiting] = _grew(ends, rows, selected["end_offset"].to_numpy(), since_ms)
    return waits, _known(is_unknown)


def _known(values: pa.ChunkedArray) -> BoolArray:
    known: BoolArray = pc.fill_null(values, fill_value=False).to_numpy().copy()
    return known


def _grew(ends: SampledOffsets, rows: Int64Array, newest: Int64Array, since_ms: int) -> BoolArray:
    """Return for each row whether the end offset grew to `newest` since the given time."""
    lowest, is_sampled = lowest_end_offset_since(ends, rows, since_ms)
    grew: BoolArray = is_sampled & (newest > lowest)
    return grew
