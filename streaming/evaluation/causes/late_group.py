"""Follow a group from sample to sample while its records wait, and find the cause of its lag.

1. The monitor follows a group while records wait in one of its partitions (`lateness.py`). When no records wait any
   more, the monitor forgets the state of the group.
2. The window of `cause_of_lag.py` begins at the first sample in which records of the group waited. The window covers at
   most WINDOW_MS.
3. A followed group has a cause only if one of its partitions is late.
4. Lost time is the time without commits around rebalances. Only the part in the window counts. The monitor knows a
   commit gap only after its end, sometimes minutes later. The time before the group got members is not lost time,
   because nobody could commit. A rebalance in progress counts from its start or from the last commit of the group,
   whichever is later, because members can commit during a rebalance.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from assignors import TopicPartition
from streaming.evaluation.causes.capacity import Capacity, known_capacities, next_capacities
from streaming.evaluation.causes.cause import Cause
from streaming.evaluation.causes.cause_of_lag import WINDOW_MS, LagFacts, cause_of_lag
from streaming.evaluation.causes.lateness import Behind, next_behind
from streaming.evaluation.causes.member_work import GroupWork, PartitionWork, group_work
from streaming.group.members import GroupMember


@dataclass(frozen=True)
class SampledGroup:
    """One sample of a group whose records wait. None means unknown.

    Rule 2 of `lateness.py` applies to the partitions in `behind`, and rule 4 applies to the partitions in `stopped`.
    `behind` contains the lag in seconds of each partition at its last commit. The partitions in `lost` may have lost
    unread records since the previous sample (rule 5 of `lateness.py`). `members` is None if the records of a member are
    missing, or if the group only commits offsets. For a group that only commits offsets, `member_count` comes from the
    listing of groups. `empty` contains the partitions without records. `lost_times` contains the start and the end of
    each recent lost time (rule 4). `rebalances` is the total since the monitor first detected the group.
    `without_members_ms` is the time without members in the last WINDOW_MS.
    """

    sampled_at_ms: int
    partitions: tuple[PartitionWork, ...]
    behind: Mapping[TopicPartition, float]
    stopped: frozenset[TopicPartition] = frozenset()
    lost: frozenset[TopicPartition] = frozenset()
    members: tuple[GroupMember, ...] | None = None
    member_count: int | None = None
    empty: Container[TopicPartition] = frozenset()
    fair_records_per_second: float | None = None
    lost_times: Sequence[tuple[int, int]] = ()
    rebalances: int = 0
    without_members_ms: int = 0


class Totals(NamedTuple):
    """The totals of `SampledGroup` at one sample."""

    sampled_at_ms: int
    rebalances: int


@dataclass(frozen=True)
class LateGroup:
    """The state of a followed group between two samples. `totals` contains the totals at each sample in the window."""

    behind: Mapping[TopicPartition, Behind] = field(default_factory=dict)
    capacities: Mapping[str, Capacity] = field(default_factory=dict)
    totals: tuple[Totals, ...] = ()


class ExplainedLag(NamedTuple):
    """The work of each member and host (None if unknown), and the cause of the lag."""

    work: GroupWork | None
    cause: Cause


def follow(known: LateGroup | None, sampled: SampledGroup) -> tuple[LateGroup, ExplainedLag | None]:
    """Return the state after this sample, and the explanation of the lag (None if no partition is late, rule 3)."""
    known = known or LateGroup()
    now_ms = sampled.sampled_at_ms
    blocked = {one.key for one in sampled.partitions if one.is_blocked}
    behind = next_behind(known.behind, sampled.behind, blocked, sampled.lost, now_ms)
    partitions = tuple(
        one._replace(
            is_late=one.key in sampled.stopped or (one.key in behind and behind[one.key].is_late(now_ms)),
            speed=behind[one.key].speed(now_ms) if one.key in behind else None,
        )
        for one in sampled.partitions
    )
    members = sampled.members or ()
    last = Totals(now_ms, sampled.rebalances)
    # If the clock was set back, totals later than now are removed.
    totals = tuple(one for one in (*known.totals, last) if 0 <= now_ms - one.sampled_at_ms <= WINDOW_MS)
    # A blocked partition does not keep its owner busy, so it says nothing about the owner's capacity.
    capacities = next_capacities(known.capacities, members, partitions, behind.keys() - blocked, now_ms)
    following = LateGroup(behind, capacities, totals)
    work = None
    if sampled.members is not None:
        work = group_work(members, partitions, sampled.empty, known_capacities(capacities))
    cause = cause_of_lag(
        LagFacts(
            sampled_at_ms=now_ms,
            partitions=partitions,
            work=work,
            member_count=sampled.member_count,
            fair_records_per_second=sampled.fair_records_per_second,
            window_ms=now_ms - totals[0].sampled_at_ms,
            lost_ms=_lost_ms(sampled.lost_times, totals[0].sampled_at_ms, now_ms),
            rebalances=max(0, last.rebalances - totals[0].rebalances),
            without_members_ms=sampled.without_members_ms,
        )
    )
    return following, None if cause is None else ExplainedLag(work, cause)


def _lost_ms(lost_times: Iterable[tuple[int, int]], window_start_ms: int, now_ms: int) -> int:
    """Return the lost time in the window (rule 4).

    >>> _lost_ms([(70_000, 200_000), (210_000, 215_000)], window_start_ms=190_000, now_ms=220_000)
    15000
    """
    parts_ms = (min(end_ms, now_ms) - max(start_ms, window_start_ms) for start_ms, end_ms in lost_times)
    return sum(max(0, part_ms) for part_ms in parts_ms)
