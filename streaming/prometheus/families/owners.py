"""Creates the metrics that alerts about owners need: busiest member, unowned partitions, and time of the assignment.

These metrics exist only for groups with a problem, so a healthy group has none of these series.

1. The busiest member is shown only if its group has excess partitions. Other groups do not need an alert. Each new
   label value creates a new series, so unnecessary series are avoided. The labels are client id, host and instance id.
   The member id is not a label, because it changes at every start of a member.
2. A group has at most one series of the busiest member. If several members have the same largest number of partitions,
   the series shows the member with the first member id in sort order.
3. If no record describes the busiest member, there is no series.
4. The time of the assignment is shown only if the group has drift or excess partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

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


def _unowned_partitions(report: GroupReport) -> int | None:
    return report.assignment.unowned_partitions or None


def _assigned_at_seconds(report: GroupReport) -> float | None:
    total, at_ms = report.fairness.partitions, report.assignment.assigned_at_ms
    has_excess = total is not None and total.excess
    if at_ms is None or not (has_excess or report.assignment.drift_partitions):
        return None
    return at_ms / 1000


OWNER_FAMILIES: Final[tuple[GroupFamily, ...]] = (
    GroupFamily(fairness.BUSIEST_MEMBER, _busiest),
    GroupFamily(fairness.UNOWNED_PARTITIONS, single_sample(_unowned_partitions)),
    GroupFamily(fairness.ASSIGNMENT_TIMESTAMP_SECONDS, single_sample(_assigned_at_seconds)),
)
