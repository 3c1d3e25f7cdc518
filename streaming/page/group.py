"""One group in full: what it is, what is wrong with it, who holds what, and what each strategy says of that.

1. What an open transaction hides is not shown (see `evaluation.severity.summary`).
2. Partitions are listed by lag, the most first, unknown ones before all; the page shows the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from assignors import TopicPartition
from streaming.evaluation.assignment.drift import StrategyDrift
from streaming.evaluation.assignment.member_shares import expected_partitions
from streaming.evaluation.lag.lag import HELD_BACK
from streaming.evaluation.lag.status import Status
from streaming.evaluation.severity.summary import GroupSummary, own_drift
from streaming.evaluation.severity.trouble import Trouble, troubles
from streaming.group.members import GroupMember, members
from streaming.group.snapshot import UNKNOWN, GroupSnapshot
from streaming.page.expected import Misplaced, misplaced_in_short
from streaming.page.heat_map import HeatMap, heat_map, member_name
from streaming.page.watched import Watched
from streaming.page.work import CommitGaps, SharedOut, commit_gaps, shared_out
from streaming.state.summaries import summary

_STATUS_NAMES = {status.value: status.name for status in Status}


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
    """One group. `assigned_by` is whose program assigned, `drifts` has the group's own strategy first.

    `misplaced` is what that strategy would have elsewhere, where that is drift. `work` is how partitions, lag and
    throughput are shared among members and hosts, `commit_gaps` how long rebalances kept the group from committing.
    """

    group: GroupSummary
    troubles: tuple[Trouble, ...]
    members: tuple[GroupMember, ...]
    heat_map: HeatMap
    drifts: tuple[StrategyDrift, ...]
    misplaced: tuple[Misplaced, ...]
    assigned_by: str | None
    record_timestamp_ms: int | None
    partitions: tuple[PartitionLag, ...]
    work: tuple[SharedOut, ...] = ()
    commit_gaps: CommitGaps | None = None


def group_detail(watched: Watched, group_id: str) -> GroupDetail | None:
    """Everything known of a group; None where there is no such group."""
    told = summary(watched.present, group_id, is_fresh=watched.is_fresh)
    if told is None:
        return None
    record = watched.present.groups[group_id]
    position, judgement = record.snapshot.position, record.judgement
    written_at_ms = position.timestamp_ms if position else None
    if HELD_BACK in told.not_known:
        return GroupDetail(told, troubles(told), (), heat_map(()), (), (), None, written_at_ms, ())
    of_group = members(record.snapshot)
    partitions = _partition_lags(watched, record.snapshot, of_group)
    lag: Mapping[TopicPartition, int | None] = {(one.topic, one.partition): one.lag for one in partitions}
    own, names = own_drift(record), {member.member_id: member_name(member) for member in of_group}
    drifts = sorted(judgement.drifts if judgement else (), key=lambda one: not one.is_group_strategy)
    return GroupDetail(
        group=told,
        troubles=troubles(told),
        members=of_group,
        heat_map=heat_map(of_group, expected_partitions(of_group, own), lag),
        drifts=tuple(drifts),
        misplaced=misplaced_in_short(own, names) if own else (),
        assigned_by=judgement.assigned_by.implementation if judgement and judgement.assigned_by else None,
        record_timestamp_ms=written_at_ms,
        partitions=partitions,
        work=shared_out(watched, record, of_group),
        commit_gaps=commit_gaps(watched.present.gap_totals.get(group_id)),
    )


def _partition_lags(
    watched: Watched, snapshot: GroupSnapshot, of_group: Sequence[GroupMember]
) -> tuple[PartitionLag, ...]:
    judged, group_id = watched.present.lag, snapshot.group_id
    if judged is None or not watched.is_fresh or not _has_utf8(group_id):
        return ()
    owners = {at: member_name(member) for member in of_group for at in member.assigned or ()}
    rows = judged.partitions.filter(pc.equal(judged.partitions["group_id"], group_id)).to_pylist()
    is_known = snapshot.state != UNKNOWN and all(member.assigned is not None for member in of_group)
    found = [_partition_lag(row, owners.get((row["topic"], row["partition"])), is_all_known=is_known) for row in rows]
    return tuple(sorted(found, key=_most_lag_first))


def _has_utf8(name: str) -> bool:
    """Whether a column of a table can hold it: a lone surrogate no record can bring, but an address can."""
    return not any("\ud800" <= sign <= "\udfff" for sign in name)


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
        status=_STATUS_NAMES.get(row["status"]),
        records_lost=row["records_lost"],
        owner=owner,
        is_owner_known=is_all_known or owner is not None,
    )
