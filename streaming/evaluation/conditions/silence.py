"""What no record of a group tells: that it hangs, or that one of its members does. Shown by silence, and by listings.

A rebalance in progress writes no record at all. The rules go on from `detectors.py`; now is the time up to which the
group's partition was read, or its coordinator was asked.

10. A partition's records *wait* if the one that the group reads next was written longer than `stuck_after_seconds` ago,
    more than `allowed_lag` of them wait, and its end offset grew within `stuck_after_seconds`. A record that has only
    just come after a quiet hour is not waited for: growth alone says nothing. Nor is a record that an open transaction
    keeps from consumers under read_committed (`is_blocked`). Of a partition that nobody committed yet, waiting are the
    records that came since its owner has it.
11. A group is *silent* if it has members, has committed before, its records wait, and nobody committed for longer than
    `stuck_after_seconds`. Where that, or any number behind it, is not known, silence is not known; nor where a complete
    listing lacks the group, which then may be gone without a record. One that is listed as Empty has no members.
12. `stuck_rebalance`: listings show the group in the middle of a rebalance for longer than `stuck_after_seconds`, and
    no record of the group came since; or it is silent, and no listing says that it is in no rebalance.
13. `silent_group`: it is silent, and the listing made meanwhile shows it in no rebalance: its members work on something
    for very long, hang, or do not commit. Nobody on call should look for a rebalance then.
14. `silent_static_member`: a static member has had partitions for longer than `stuck_after_seconds`, their records
    wait, it committed none of them for so long, and somebody else of the group did commit. Its instance id is fenced,
    or it is stuck in its work. In a group that is silent as a whole nobody is named.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignors import TopicPartition
from streaming.combine.wire import BoolArray, Int64Array
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.lag.lag_seconds import AT_LEAST, lowest_end_offset_since
from streaming.evaluation.lag.sampled_offsets import SampledOffsets
from streaming.evaluation.rebalances.detectors import Limits
from streaming.group.members import TopicPartitions
from streaming.group.snapshot import REBALANCING

STUCK_REBALANCE = "stuck_rebalance"
SILENT_GROUP = "silent_group"
SILENT_STATIC_MEMBER = "silent_static_member"


@dataclass(frozen=True, slots=True)
class GroupCommits:
    """A group's commits: when the last was made, of how many partitions, and whether records wait (None: not known)."""

    last_ms: int
    partitions: int
    wait: bool | None


def is_silent(members: int, commits: GroupCommits | None, now_ms: int, limits: Limits) -> bool | None:
    """Whether nobody commits although records wait (rule 11); None where something is not known.

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
    return commits.wait


def why_silent(silent: bool | None, listed_state: str | None, rebalancing_ms: int | None, limits: Limits) -> str | None:
    """The condition of rules 12 and 13, None where there is none.

    `listed_state` is the listing's, None where it names none; `rebalancing_ms` how long listings show a rebalance.

    >>> why_silent(True, None, None, Limits()), why_silent(True, "Stable", None, Limits())
    ('stuck_rebalance', 'silent_group')
    """
    if rebalancing_ms is not None and rebalancing_ms > 1000 * limits.stuck_after_seconds:
        return STUCK_REBALANCE
    if not silent:
        return None
    return STUCK_REBALANCE if listed_state is None or listed_state in REBALANCING else SILENT_GROUP


@dataclass(frozen=True, slots=True)
class OwnedPartitions:
    """What the static members of a group have, by group instance id, and since when they have it at the latest."""

    of_member: Mapping[str, TopicPartitions]
    since_ms: int


@dataclass(frozen=True, slots=True)
class PartitionCommits:
    """A group's commits by partition, and the partitions whose records wait."""

    last_ms: Mapping[TopicPartition, int]
    waiting: Collection[TopicPartition]


def silent_static_owners(
    owned: OwnedPartitions, commits: PartitionCommits, now_ms: int, limits: Limits
) -> tuple[str, ...]:
    """Static members that own partitions and commit none of them (rule 14).

    >>> owned = OwnedPartitions({"pod-0": (("t", 0),), "pod-1": (("t", 1),)}, since_ms=20)
    >>> commits = PartitionCommits({("t", 0): 10, ("t", 1): 900_000}, {("t", 0), ("t", 1)})
    >>> silent_static_owners(owned, commits, 900_000, Limits())
    ('pod-0',)
    """
    a_round_ago_ms = now_ms - 1000 * limits.stuck_after_seconds
    latest_ms = max(commits.last_ms.values(), default=owned.since_ms)
    if owned.since_ms > a_round_ago_ms or latest_ms <= a_round_ago_ms:
        return ()

    def is_silent_owner(partitions: TopicPartitions) -> bool:
        last_ms = max((commits.last_ms.get(at, owned.since_ms) for at in partitions), default=owned.since_ms)
        return last_ms <= a_round_ago_ms and any(at in commits.waiting for at in partitions)

    return tuple(sorted(member for member, has in owned.of_member.items() if is_silent_owner(has)))


class Silence:
    """One sample's commits, looked through for groups whose records wait: whole columns first, few rows after.

    `ends` has taken the sample in.
    """

    def __init__(self, lag: LagEvaluation, ends: SampledOffsets, limits: Limits) -> None:
        self._ends = ends
        self._partitions = lag.partitions
        self._since_ms = lag.report.sampled_at_ms - int(1000 * limits.stuck_after_seconds)
        self._waits, is_unknown = _waits(lag, ends, limits)
        columns = {"waits": pa.array(self._waits), "unknown": pa.array(is_unknown)}
        evaluated = lag.partitions.select(["group_id", "commit_timestamp_ms"])
        for name, values in columns.items():
            evaluated = evaluated.append_column(name, values)
        self._groups = evaluated.group_by("group_id").aggregate(
            [("commit_timestamp_ms", "max"), ([], "count_all"), ("waits", "any"), ("unknown", "any")]
        )

    def by_group(self) -> Mapping[str, GroupCommits]:
        """Commits of every group that has some."""
        names = ("group_id", "commit_timestamp_ms_max", "count_all", "waits_any", "unknown_any")
        rows = zip(*(self._groups[name].to_pylist() for name in names), strict=True)
        return {
            group_id: GroupCommits(last_ms, partitions, True if waits else (None if unknown else False))
            for group_id, last_ms, partitions, waits, unknown in rows
        }

    def groups_with_a_silent_partition(self) -> frozenset[str]:
        """Groups in which records of some partition wait that was not committed for `stuck_after_seconds` or longer."""
        is_old = pc.less_equal(self._partitions["commit_timestamp_ms"], self._since_ms)
        silent = self._partitions["group_id"].filter(pc.and_(is_old, pa.array(self._waits)))
        return frozenset(pc.unique(silent).to_pylist())

    def of_groups(self, group_ids: Collection[str]) -> Mapping[str, PartitionCommits]:
        """Commits of some groups by partition; those of a group that has none are left out."""
        wanted = pc.is_in(self._partitions["group_id"], value_set=pa.array(sorted(group_ids), pa.string()))
        names = ("group_id", "topic", "partition", "commit_timestamp_ms")
        columns = [self._partitions[name].filter(wanted).to_pylist() for name in names]
        waits = self._waits[wanted.to_numpy()].tolist() if group_ids else []
        found: dict[str, tuple[dict[TopicPartition, int], set[TopicPartition]]] = {}
        for group_id, topic, partition, last_ms, is_waiting in zip(*columns, waits, strict=True):
            last, waiting = found.setdefault(group_id, ({}, set()))
            last[topic, partition] = last_ms
            if is_waiting:
                waiting.add((topic, partition))
        return {group_id: PartitionCommits(last, waiting) for group_id, (last, waiting) in found.items()}

    def growing_rows(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Those of the partitions whose end offset grew within `stuck_after_seconds`, with their rows in `ends`."""
        asked = sorted(partitions)
        topics = pa.array([topic for topic, _ in asked], pa.string())
        rows = self._ends.rows(topics, np.array([at for _, at in asked], dtype=np.int64))
        newest = self._ends.points.offsets[rows, np.maximum(self._ends.points.counts[rows] - 1, 0)]
        grows = _grew(self._ends, rows, newest, self._since_ms)
        return {at: row for at, row, grew in zip(asked, rows.tolist(), grows.tolist(), strict=True) if grew}

    def waits_since(self, row: int, owned_since_ms: int) -> bool:
        """Whether records came between that time and `stuck_after_seconds` ago (rule 10, its last sentence)."""
        points = self._ends.points.of_row(row)
        before = [offset for offset, at_ms in points if owned_since_ms <= at_ms <= self._since_ms]
        return bool(before) and before[-1] > before[0]


def _waits(lag: LagEvaluation, ends: SampledOffsets, limits: Limits) -> tuple[BoolArray, BoolArray]:
    """Of every committed partition whether its records wait (rule 10), and whether that is not known."""
    partitions = lag.partitions
    records, seconds = partitions["lag"], partitions["lag_seconds"]
    is_none = pc.or_kleene(pc.less_equal(records, limits.allowed_lag), partitions["is_blocked"])
    is_long = pc.greater(seconds, limits.stuck_after_seconds)
    is_bound = pc.equal(partitions["lag_seconds_kind"].cast(pa.string()), AT_LEAST)
    is_open = pc.or_kleene(pc.is_null(seconds), pc.and_(is_bound, pc.invert(is_long)))
    is_unknown = pc.or_kleene(pc.is_null(records), pc.and_kleene(pc.invert(is_none), is_open))
    waits = _known(pc.and_(pc.invert(is_none), is_long))
    long_waiting = np.flatnonzero(waits)
    waits[long_waiting] = _grows(lag, ends, long_waiting, limits)
    return waits, _known(is_unknown)


def _known(values: pa.ChunkedArray) -> BoolArray:
    known: BoolArray = pc.fill_null(values, fill_value=False).to_numpy().copy()
    return known


def _grows(lag: LagEvaluation, ends: SampledOffsets, at: Int64Array, limits: Limits) -> BoolArray:
    """Whether the end offset of these rows grew within `stuck_after_seconds`."""
    some = lag.partitions.select(["topic", "partition", "end_offset"]).take(pa.array(at))
    rows = ends.rows(some["topic"].combine_chunks(), some["partition"].to_numpy())
    since_ms = lag.report.sampled_at_ms - int(1000 * limits.stuck_after_seconds)
    return _grew(ends, rows, some["end_offset"].to_numpy(), since_ms)


def _grew(ends: SampledOffsets, rows: Int64Array, newest: Int64Array, since_ms: int) -> BoolArray:
    lowest, is_sampled = lowest_end_offset_since(ends, rows, since_ms)
    grew: BoolArray = is_sampled & (newest > lowest)
    return grew
