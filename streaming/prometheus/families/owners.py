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

from streaming.evaluation.fairness.fairness import among_members
from streaming.evaluation.fairness.imbalance import PARTITIONS
from streaming.evaluation.turn import GroupRecord
from streaming.group.snapshot import GroupSnapshot
from streaming.prometheus.group_facts import GroupFacts, GroupFamily, single
from streaming.prometheus.lines import Sample
from streaming.protocol.classic import ClassicMember
from streaming.protocol.modern import ModernMember
from streaming.signals import fairness


def _busiest(facts: GroupFacts) -> Iterable[Sample]:
    record = facts.record
    total = among_members(record.judgement.imbalances, PARTITIONS) if record.judgement else None
    if facts.is_held_back or total is None or not total.excess or total.busiest is None or total.largest is None:
        return
    member = _member(record.snapshot, total.busiest)
    if member is not None:
        who = (member.client_id, member.client_host, member.group_instance_id or "")
        yield Sample((facts.group_id, *who), total.largest)


def _member(snapshot: GroupSnapshot, member_id: str) -> ClassicMember | ModernMember | None:
    if snapshot.modern is not None:
        return snapshot.modern.members.get(member_id)
    known = snapshot.classic.members if snapshot.classic is not None else ()
    return next((member for member in known if member.member_id == member_id), None)


def _assigned_at_seconds(record: GroupRecord) -> float | None:
    return None if record.judgement is None else record.judgement.position.timestamp_ms / 1000


OWNER_FAMILIES: Final[tuple[GroupFamily, ...]] = (
    (fairness.BUSIEST_MEMBER, _busiest),
    (fairness.UNOWNED_PARTITIONS, single(GroupRecord.unowned_partitions)),
    (fairness.ASSIGNMENT_TIMESTAMP_SECONDS, single(_assigned_at_seconds)),
)
