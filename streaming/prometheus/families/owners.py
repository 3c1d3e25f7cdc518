"""Creates the metrics for alerts about partition owners.

The metrics show the busiest member, unowned partitions, uneven work, and the time of the assignment. The metrics also
show the cause of lag and the worst partition. A healthy group has no series of these metrics.

1. The busiest member has a series only if its group has excess partitions. The labels are client id, host and instance
   id. The member id is not a label, because each restart of a member would create a new series.
2. A group has at most one series of the busiest member. In a tie, the series shows the member with the alphabetically
   first member id.
3. If the client of the busiest member is unknown, the series is missing.
4. A group with a cause of lag has one series with this cause. If the cause has a topic that the settings do not select,
   the series is missing.
5. The worst partition has the largest lag in seconds. The worst partition has a series only if the settings select its
   topic and the lag of its group is above the limit. If the owner is unknown, the labels of the owner are empty.
6. The time of the assignment has a series only if the group has drift or excess partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from streaming.config.names import NameFilter
from streaming.evaluation.incidents.evidence import lag_cause_name
from streaming.evaluation.report import GroupReport
from streaming.prometheus.group_texts import GroupFamily, single_sample
from streaming.prometheus.lines import Sample
from streaming.signals import fairness


def _busiest(report: GroupReport) -> Iterable[Sample]:
    total = report.fairness.partitions
    if total is None or not total.excess or total.busiest is None or total.largest is None:
        return
    member = report.members.by_id.get(total.busiest)
    if member is not None:
        labels = (member.client_id, member.client_host, member.group_instance_id or "")
        yield Sample((report.group_id, *labels), total.largest)


def worst_partitions(reports: Iterable[GroupReport], groups: pa.Table, topics: NameFilter) -> list[Sample]:
    """For each group with a lag above its limit, return the worst partition (rule 5).

    `groups` has the columns of GROUP_LAGS_SCHEMA.
    """
    report_of = {report.group_id: report for report in reports}
    late = groups.filter(pc.is_valid(groups["worst_topic"])).select(
        ["group_id", "lag_seconds", "worst_topic", "worst_partition"]
    )
    shown = set(topics.among(set(late["worst_topic"].to_pylist())))
    samples = []
    for group_id, seconds, topic, partition in zip(*(column.to_pylist() for column in late.columns), strict=True):
        report = report_of.get(group_id)
        if report is not None and topic in shown and seconds > report.limits.max_lag_seconds:
            owner = report.members.owners.get((topic, partition))
            member = (owner.client_id, owner.client_host, owner.group_instance_id or "") if owner else ("", "", "")
            samples.append(Sample((group_id, topic, str(partition), *member), 1))
    return samples


def lag_causes(reports: Iterable[GroupReport], topics: NameFilter) -> list[Sample]:
    """Return one sample for each group with a cause of lag (rule 4)."""
    causes = [(report.group_id, report.cause) for report in reports if report.cause is not None]
    shown = set(topics.among({cause.topic for _, cause in causes if cause.topic}))
    samples = []
    for group_id, cause in causes:
        if not cause.topic or cause.topic in shown:
            partition = "" if cause.partition is None else str(cause.partition)
            place = (cause.topic, partition, cause.client_id, cause.client_host)
            samples.append(Sample((group_id, lag_cause_name(cause.kind, cause.reason), *place), 1))
    return samples


def _uneven_work(report: GroupReport) -> float | None:
    work = report.fairness.uneven_work
    return work.excess if work else None


def _assigned_at_seconds(report: GroupReport) -> float | None:
    total, at_ms = report.fairness.partitions, report.assignment.assigned_at_ms
    has_excess = total is not None and total.excess
    if at_ms is None or not (has_excess or report.assignment.drift_partitions):
        return None
    return at_ms / 1000


OWNER_FAMILIES: Final[tuple[GroupFamily, ...]] = (
    GroupFamily(fairness.BUSIEST_MEMBER, _busiest),
    GroupFamily(
        fairness.UNOWNED_PARTITIONS, single_sample(lambda report: report.assignment.unowned_partitions or None)
    ),
    GroupFamily(fairness.UNEVEN_WORK_RECORDS_PER_SECOND, single_sample(_uneven_work)),
    GroupFamily(fairness.ASSIGNMENT_TIMESTAMP_SECONDS, single_sample(_assigned_at_seconds)),
)
