"""Who has what, as far as somebody who is called needs it: who holds too much, what nobody reads, and since when.

1. The member that holds most is named where it holds more than it need: of other groups nobody is called for that, and
   a name in labels is a new series whenever it is another's. By client id, host and instance id: a member id would be a
   new one at every start.
2. A group has one such series at most: of several members that hold as many, the first by member id.
3. Without a record of that member it is not known who it is: no series.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from streaming.evaluation.report import GroupReport
from streaming.prometheus.group_texts import GroupFamily, single
from streaming.prometheus.lines import Sample
from streaming.signals import fairness


def _busiest(report: GroupReport) -> Iterable[Sample]:
    total = report.fairness.partitions
    if total is None or not total.excess or total.busiest is None or total.largest is None:
        return
    member = report.members.by_id.get(total.busiest)
    if member is not None:
        who = (member.client_id, member.client_host, member.group_instance_id or "")
        yield Sample((report.group_id, *who), total.largest)


def _assigned_at_seconds(report: GroupReport) -> float | None:
    at_ms = report.assignment.assigned_at_ms
    return None if at_ms is None else at_ms / 1000


OWNER_FAMILIES: Final[tuple[GroupFamily, ...]] = (
    (fairness.BUSIEST_MEMBER, _busiest),
    (fairness.UNOWNED_PARTITIONS, single(lambda report: report.assignment.unowned_partitions)),
    (fairness.ASSIGNMENT_TIMESTAMP_SECONDS, single(_assigned_at_seconds)),
)
