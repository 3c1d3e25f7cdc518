"""Collects everything that the page of one group shows.

1. If an open transaction blocks the group, the lag is unknown, and the page lists no partitions.
2. Partitions with unknown lag come first. The other partitions follow, the largest lag first. The page shows 50
   partitions at a time.
3. If a partition has an owner but no committed offset, its lag is unknown. For such a partition, the page shows only
   the topic and the number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assignors import TopicPartition
from streaming.combine.gaps import GAP_BUCKETS_SECONDS, GapTotals
from streaming.evaluation.assignment.leader import MemberLibrary, member_library
from streaming.evaluation.facts import Members
from streaming.evaluation.fairness.imbalance import Imbalance
from streaming.evaluation.fairness.participants import HOST
from streaming.evaluation.report import GroupReport
from streaming.evaluation.what_if.inputs import group_produce_rates
from streaming.group.members import GroupMember
from streaming.group.printable import by_topic
from streaming.page.drift_words import Misplaced, misplaced_in_short
from streaming.page.heat_map import HeatMap, heat_map
from streaming.page.page_input import WatchedCluster

LONG_GAP_SECONDS = 60


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition with a committed offset, at the last sample. None means unknown.

    If the lag is unknown, `unknown_reason` is set. All `owner` fields are None if the partition has no known owner.
    `owner` is the member's name. If the owner is unknown, `is_owner_known` is False.
    """

    topic: str
    partition: int
    committed_offset: int
    end_offset: int | None
    lag: int | None
    unknown_reason: str | None
    lag_seconds: float | None
    lag_seconds_is_bound: bool
    status: str | None
    records_lost: int | None
    last_commit_ms: int
    consumed_records_per_second: float | None
    produced_records_per_second: float | None
    seconds_until_lost: float | None
    owner: str | None
    owner_client_id: str | None
    owner_client_host: str | None
    owner_group_instance_id: str | None
    is_owner_known: bool


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """One member. `library` is None if it is unknown. `is_leader` is None in a classic group with an unknown leader."""

    member: GroupMember
    library: MemberLibrary | None
    is_leader: bool | None


@dataclass(frozen=True, slots=True)
class WorkShare:
    """The distribution of one kind of work (`measure`) over members or hosts (`scope`). None means unknown.

    The amounts are partitions, records (lag) or records per second (throughput). The partition counts come from the
    last evaluated record of the group. Lag and throughput are the last values that the monitor measured for the current
    assignment. The page shows lag and throughput only while the last sample is fresh.

    `busiest` has the largest amount, and the same name as in the heat map. `score` is 100 if no valid assignment is
    fairer. `score_reason` is set if there is no score. If the value of one partition is unknown, all values are
    unknown, and `unknown_reason` is set. `unknown_partitions` counts the partitions with an unknown value.
    """

    measure: str
    scope: str
    participants: int | None
    total: float | None
    largest: float | None
    smallest: float | None
    busiest: str | None
    max_to_mean_ratio: float | None
    score: float | None
    score_reason: str | None
    unknown_reason: str | None
    unknown_partitions: int


@dataclass(frozen=True, slots=True)
class CommitGaps:
    """The number of known commit gaps, their total duration, and the number of gaps longer than `long_seconds`."""

    gaps: int
    total_ms: int
    long_gaps: int
    long_seconds: int


@dataclass(frozen=True, slots=True)
class GroupDetail:
    """All values that the page of one group shows.

    `misplaced` contains the partitions whose owner breaks a rule of the group's strategy. `without_commit` lists the
    partitions of rule 3: each topic with its partition numbers as ranges. `produce_rates` contains the known produce
    rates in records per second. The what-if uses them.
    """

    group: GroupReport
    heat_map: HeatMap
    misplaced: tuple[Misplaced, ...]
    partitions: tuple[PartitionLag, ...]
    work: tuple[WorkShare, ...]
    commit_gaps: CommitGaps | None
    members: tuple[MemberFacts, ...]
    without_commit: tuple[tuple[str, str], ...]
    produce_rates: Mapping[TopicPartition, float]


def group_detail(watched: WatchedCluster, group_id: str) -> GroupDetail | None:
    """Return the details of a group. Return None if the group does not exist."""
    group = watched.reports.get(group_id)
    if group is None:
        return None
    evaluation = None if group.is_blocked else watched.lag
    rows = evaluation.rows_of(group_id) if evaluation else ()
    partitions, own, sample = _partition_lags(rows, group), group.assignment.own, watched.view.sample
    lag: Mapping[TopicPartition, int | None] = {(one.topic, one.partition): one.lag for one in partitions}
    names = {member_id: member.name for member_id, member in group.members.by_id.items()}
    return GroupDetail(
        group=group,
        heat_map=heat_map(group.members.each, group.members.expected_partitions, lag),
        misplaced=misplaced_in_short(own, names) if own else (),
        partitions=partitions,
        work=tuple(_work_share(one, names) for one in group.fairness.work),
        commit_gaps=commit_gaps(group.rebalances.commit_gaps),
        produce_rates=group_produce_rates(rows, group.members.each, sample) if sample and watched.is_fresh else {},
        members=_member_facts(group),
        without_commit=by_topic(one for one in group.members.owners if one not in lag) if evaluation else (),
    )


def _member_facts(group: GroupReport) -> tuple[MemberFacts, ...]:
    leader, assigned_by = group.members.leader, group.assignment.assigned_by
    is_leader_known = leader is not None or group.membership.group_type != "classic"
    return tuple(
        MemberFacts(
            member,
            member_library(group.group_id, member, leader, assigned_by),
            leader is not None and leader.member_id == member.member_id if is_leader_known else None,
        )
        for member in leader_first(group.members)
    )


def leader_first(members: Members) -> Sequence[GroupMember]:
    """Return all members: first the leader of a classic group, then the other members, sorted by name."""
    leader = members.leader
    return sorted(members.each, key=lambda one: (one != leader, one.name, one.member_id))


def _partition_lags(rows: Sequence[Mapping[str, Any]], group: GroupReport) -> tuple[PartitionLag, ...]:
    owners, are_owners_known = group.members.owners, group.are_owners_known
    partitions = [
        _partition_lag(row, owners.get((row["topic"], row["partition"])), are_owners_known=are_owners_known)
        for row in rows
    ]
    return tuple(sorted(partitions, key=lambda one: (one.lag is not None, -(one.lag or 0), one.topic, one.partition)))


def _partition_lag(row: Mapping[str, Any], owner: GroupMember | None, *, are_owners_known: bool) -> PartitionLag:
    return PartitionLag(
        topic=row["topic"],
        partition=row["partition"],
        committed_offset=row["committed_offset"],
        end_offset=row["end_offset"],
        lag=row["lag"],
        unknown_reason=row["unknown_reason"],
        lag_seconds=row["lag_seconds"],
        lag_seconds_is_bound=row["lag_seconds_kind"] == "at_least",
        status=row["status"],
        records_lost=row["records_lost"],
        last_commit_ms=row["commit_timestamp_ms"],
        consumed_records_per_second=row["consumed_records_per_second"],
        produced_records_per_second=row["produced_records_per_second"],
        seconds_until_lost=row["seconds_until_lost"],
        owner=owner.name if owner else None,
        owner_client_id=owner.client_id if owner else None,
        owner_client_host=owner.client_host if owner else None,
        owner_group_instance_id=owner.group_instance_id if owner else None,
        is_owner_known=are_owners_known or owner is not None,
    )


def _work_share(one: Imbalance, names: Mapping[str, str]) -> WorkShare:
    busiest = one.busiest if one.scope == HOST or one.busiest is None else names.get(one.busiest, one.busiest)
    return WorkShare(
        measure=one.measure,
        scope=one.scope,
        participants=one.participants,
        total=one.total,
        largest=one.largest,
        smallest=one.smallest,
        busiest=busiest,
        max_to_mean_ratio=one.max_to_mean_ratio,
        score=one.score,
        score_reason=one.score_reason or None,
        unknown_reason=one.unknown_reason or None,
        unknown_partitions=one.unknown_partitions,
    )


def commit_gaps(totals: GapTotals | None) -> CommitGaps | None:
    """Return the summary of all known commit gaps since the monitor first saw the group, or None if no gap is known.

    >>> commit_gaps(GapTotals((3, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0), 700_000))
    CommitGaps(gaps=5, total_ms=700000, long_gaps=1, long_seconds=60)
    >>> commit_gaps(GapTotals()) is None
    True
    """
    if totals is None or not sum(totals.buckets):
        return None
    longer = GAP_BUCKETS_SECONDS.index(LONG_GAP_SECONDS) + 1
    return CommitGaps(sum(totals.buckets), totals.sum_ms, sum(totals.buckets[longer:]), LONG_GAP_SECONDS)
