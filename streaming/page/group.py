"""One group in full: what it is, what is wrong with it, who holds what, and what each strategy says of that.

1. What an open transaction hides is not shown (see `evaluation.evaluate`).
2. Partitions are listed by lag, the most first, unknown ones before all; the page shows the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assignors import TopicPartition
from streaming.evaluation.report import GroupReport
from streaming.group.snapshot import UNKNOWN
from streaming.page.expected import Misplaced, misplaced_in_short
from streaming.page.heat_map import HeatMap, heat_map
from streaming.page.watched import Watched
from streaming.page.work import CommitGaps, SharedOut, commit_gaps, shared_out


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One committed partition as of the last sample; None is unknown, `unknown_reason` says why there is no lag.

    `owner` is the name of the member that reads it; None: nobody, or unknown (`is_owner_known` False).
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
    owner: str | None
    is_owner_known: bool = True


@dataclass(frozen=True, slots=True)
class GroupDetail:
    """One group. `misplaced` is what its own strategy would have elsewhere, where that is drift.

    `work` is how partitions, lag and throughput are shared among members and hosts, `commit_gaps` how long rebalances
    kept the group from committing.
    """

    group: GroupReport
    heat_map: HeatMap
    misplaced: tuple[Misplaced, ...]
    partitions: tuple[PartitionLag, ...]
    work: tuple[SharedOut, ...]
    commit_gaps: CommitGaps | None


def group_detail(watched: Watched, group_id: str) -> GroupDetail | None:
    """Everything known of a group; None where there is no such group."""
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
        work=shared_out(group),
        commit_gaps=commit_gaps(group.rebalances.commit_gaps),
    )


def _partition_lags(watched: Watched, group: GroupReport) -> tuple[PartitionLag, ...]:
    if watched.view.lag is None or not watched.is_fresh or group.is_blocked:
        return ()
    of_group = group.members.each
    owners = {at: member.name for member in of_group for at in member.assigned or ()}
    only_commits = group.members.snapshot is None
    is_known = not only_commits and group.membership.state != UNKNOWN
    is_known = is_known and all(member.assigned is not None for member in of_group)
    found = [
        _partition_lag(row, owners.get((row["topic"], row["partition"])), is_all_known=is_known)
        for row in watched.view.lag.rows_of(group.group_id)
    ]
    return tuple(sorted(found, key=_most_lag_first))


def _most_lag_first(one: PartitionLag) -> tuple[bool, int, str, int]:
    return (one.lag is not None, -(one.lag or 0), one.topic, one.partition)


def _partition_lag(row: Mapping[str, Any], owner: str | None, *, is_all_known: bool) -> PartitionLag:
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
        owner=owner,
        is_owner_known=is_all_known or owner is not None,
    )
