"""Collects everything that the page of one group shows.

1. If an open transaction hides a value, the value is not shown (see `evaluation.evaluate`).
2. Partitions with unknown lag come first, then the partitions with the largest lag. The page shows the first 20
   partitions in this order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assignors import TopicPartition
from streaming.evaluation.report import GroupReport
from streaming.group.members import GroupMember
from streaming.page.expected import Misplaced, misplaced_in_short
from streaming.page.heat_map import HeatMap, heat_map
from streaming.page.watched import WatchedCluster
from streaming.page.work import CommitGaps, WorkShare, commit_gaps, work_shares


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition with a committed offset, at the last sample. None means unknown.

    If the lag is unknown, `unknown_reason` is set.

    `owner` is the name of the member that owns the partition. The three fields after it describe the same member. They
    are None if the partition has no owner, or if the owner is unknown (`is_owner_known` is False).
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
class GroupDetail:
    """All values that the page of one group shows.

    If the verdict on the group's own strategy is `drift`, `misplaced` contains the partitions with a wrong owner.

    `work` describes how members and hosts share partitions, lag and throughput. `commit_gaps` shows how long the group
    did not commit during each rebalance.
    """

    group: GroupReport
    heat_map: HeatMap
    misplaced: tuple[Misplaced, ...]
    partitions: tuple[PartitionLag, ...]
    work: tuple[WorkShare, ...]
    commit_gaps: CommitGaps | None


def group_detail(watched: WatchedCluster, group_id: str) -> GroupDetail | None:
    """Return the details of a group. Return None if the group does not exist."""
    group = watched.reports.get(group_id)
    if group is None:
        return None
    partitions, own = _partition_lags(watched, group), group.assignment.own
    lag: Mapping[TopicPartition, int | None] = {(one.topic, one.partition): one.lag for one in partitions}
    names = {member_id: member.name for member_id, member in group.members.by_id.items()}
    return GroupDetail(
        group=group,
        heat_map=heat_map(group.members.each, group.members.expected_partitions, lag),
        misplaced=misplaced_in_short(own, names) if own else (),
        partitions=partitions,
        work=work_shares(group),
        commit_gaps=commit_gaps(group.rebalances.commit_gaps),
    )


def _partition_lags(watched: WatchedCluster, group: GroupReport) -> tuple[PartitionLag, ...]:
    if watched.view.lag is None or not watched.is_fresh or group.is_blocked:
        return ()
    owners = group.members.owners
    partitions = [
        _partition_lag(row, owners.get((row["topic"], row["partition"])), are_owners_known=group.are_owners_known)
        for row in watched.view.lag.rows_of(group.group_id)
    ]
    return tuple(sorted(partitions, key=_sort_key))


def _sort_key(one: PartitionLag) -> tuple[bool, int, str, int]:
    """Return the sort key of a partition (rule 2)."""
    return (one.lag is not None, -(one.lag or 0), one.topic, one.partition)


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
