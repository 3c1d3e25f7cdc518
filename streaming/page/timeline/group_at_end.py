"""Defines the state of a group at the end of the timeline's window. The window ends now or at a moment in the past.

1. If the window ends now, the values come from the `MonitorView`. If the window ends in the past, the values come from
   the tables.
2. The limit of the lag (`max_lag_seconds`) always comes from the present settings. If the group does not exist now, the
   limit is unknown. Without a known limit, the timeline shows no periods above the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from streaming.delta.cells import timestamp_ms
from streaming.evaluation.limits import GroupLimits
from streaming.evaluation.report import GroupReport
from streaming.group.snapshot import UNKNOWN
from streaming.page.page_input import READY, WatchedCluster
from streaming.page.timeline.history import Holding
from streaming.page.timeline.lag_rows import Lags
from streaming.past.report import PastGroup


class GroupAtEnd(NamedTuple):
    """What is known about a group at the end of the window. None means unknown.

    `last_record_ms` is the time of the group's last record. `rebalances_ms` are the times of the group's last
    rebalances. `sampled_ms` is the time of the last sample. `sampled_ms` is None if the cluster is not ready, or if the
    window ends in the past.
    """

    report: GroupReport
    members: tuple[Holding, ...] | None
    last_record_ms: int | None
    rebalances_ms: Sequence[int]
    lag: Lags | None
    max_lag_seconds: float | None
    sampled_ms: int | None = None


def present_group(watched: WatchedCluster, report: GroupReport) -> GroupAtEnd:
    """Return the present state of the group."""
    view, record = watched.view, watched.view.groups.get(report.group_id)
    position = record.snapshot.position if record else None
    lag = None
    if watched.lag is not None and not report.is_blocked:
        lag = watched.lag.by_partition.get(report.group_id, {})
    return GroupAtEnd(
        report=report,
        members=None if report.members.snapshot is None else _members(report),
        last_record_ms=position.timestamp_ms if position else None,
        rebalances_ms=[one.timestamp_ms for one in record.rebalance_history.recent] if record else (),
        lag=lag,
        max_lag_seconds=report.limits.max_lag_seconds,
        sampled_ms=view.sample.sampled_at_ms if watched.phase == READY and view.sample else None,
    )


def past_group(past: PastGroup, limits: GroupLimits | None) -> GroupAtEnd:
    """Return the state of the group at a past moment. `limits` are the present limits of the group (rule 2)."""
    report = past.report
    lag = {(one.topic, one.partition): one.lag for one in past.partitions}
    return GroupAtEnd(
        report=report,
        members=_members(report),
        last_record_ms=report.membership.record_timestamp_ms,
        rebalances_ms=[timestamp_ms(row["record_time"]) for row in past.rebalances],
        lag=lag if past.measurement.is_recent and not report.is_blocked else None,
        max_lag_seconds=limits.max_lag_seconds if limits else None,
    )


def _members(report: GroupReport) -> tuple[Holding, ...] | None:
    if report.membership.state == UNKNOWN:
        return None
    return tuple(
        Holding(one.member_id, one.name, one.client_host, None if one.assigned is None else len(one.assigned))
        for one in report.members.each
    )
