"""Creates the metrics for alerts about partition owners: busiest member, unowned partitions, time of the assignment.

1. The busiest member is shown only if its group has excess partitions. Other groups do not need an alert, and each new
   label value would create a new series. The labels are client id, host and instance id. The member id is not a label,
   because a member gets a new member id at each start.
2. A group has at most one series of the busiest member. If several members have the largest number of partitions, the
   series shows the member whose member id is first in sort order.
3. If no record describes the busiest member, there is no series.
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


def _assigned_at_seconds(report: GroupReport) -> float | None:
    at_ms = report.assignment.assigned_at_ms
    return None if at_ms is None else at_ms / 1000


OWNER_FAMILIES: Final[tuple[GroupFamily, ...]] = (
    (fairness.BUSIEST_MEMBER, _busiest),
    (fairness.UNOWNED_PARTITIONS, single_sample(lambda report: report.assignment.unowned_partitions)),
    (fairness.ASSIGNMENT_TIMESTAMP_SECONDS, single_sample(_assigned_at_seconds)),
)
