"""Metric families of who has what, as far as somebody who is called needs it: who holds too much, what nobody reads.

1. The member that holds most is named where it holds more than it need: of other groups nobody is called for that, and
   a name in labels is a new series whenever it is another's. By client id, host and instance id: a member id would be a
   new one at every start.
2. A group has one such series at most: of several members that hold as many, the first by member id.
3. Without a record of that member it is not known who it is: no series.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from prometheus_client.core import Metric

from streaming.group.snapshot import GroupSnapshot
from streaming.judgement.fairness import among_members
from streaming.judgement.imbalance import PARTITIONS
from streaming.judgement.turn import GroupRecord
from streaming.protocol.classic import ClassicMember
from streaming.protocol.modern import ModernMember
from streaming.signals.fairness import ASSIGNMENT_TIMESTAMP_SECONDS, BUSIEST_MEMBER, UNOWNED_PARTITIONS
from streaming.sinks.families import add, gauge

Records = Collection[tuple[str, GroupRecord]]


def owner_families(cluster: str, records: Records) -> Iterator[Metric]:
    """Who holds too much, what has no owner, and since when it is so."""
    yield _busiest(cluster, records)
    unowned, since = gauge(UNOWNED_PARTITIONS), gauge(ASSIGNMENT_TIMESTAMP_SECONDS)
    for group_id, record in records:
        if (partitions := record.unowned_partitions()) is not None:
            add(unowned, (cluster, group_id), partitions)
        if record.judgement is not None:
            add(since, (cluster, group_id), record.judgement.position.timestamp_ms / 1000)
    yield unowned
    yield since


def _busiest(cluster: str, records: Records) -> Metric:
    family = gauge(BUSIEST_MEMBER)
    for group_id, record in records:
        total = among_members(record.judgement.imbalances, PARTITIONS) if record.judgement else None
        if total is None or not total.excess or total.busiest is None or total.largest is None:
            continue
        member = _member(record.snapshot, total.busiest)
        if member is not None:
            who = (member.client_id, member.client_host, member.group_instance_id or "")
            add(family, (cluster, group_id, *who), total.largest)
    return family


def _member(snapshot: GroupSnapshot, member_id: str) -> ClassicMember | ModernMember | None:
    if snapshot.modern is not None:
        return snapshot.modern.members.get(member_id)
    known = snapshot.classic.members if snapshot.classic is not None else ()
    return next((member for member in known if member.member_id == member_id), None)
