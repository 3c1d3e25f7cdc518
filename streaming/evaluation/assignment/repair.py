"""Which partitions have an owner that breaks a rule, and who should have them instead.

A strategy with many right answers puts no partition in one place. So what is wrong is found by repairing the actual
assignment: a sticky strategy that is given it as what members have moves only what must move. Rules:

1. The repair keeps the first owner of a partition that several have, if it is a member and subscribes to the topic.
2. Where the promise is to be even in each topic (`range`), each topic is repaired by itself.
3. A law that names a partition names a misplaced one. Balance names none: misplaced is what the repair moves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from assignors import BUILT_IN, GroupAssignment, GroupSpec, MemberSubscription, TopicPartition
from assignors.subscriptions import distinct_subscriptions, subscribers_by_topic
from streaming.evaluation.assignment.assignment_inputs import AssignmentInputs

_STICKY = BUILT_IN["sticky"]
_EVEN_IN_EACH_TOPIC = frozenset({"range", "server-range"})


def repaired(known: AssignmentInputs, balance: str | None) -> GroupAssignment:
    """The assignment nearest to the actual one that is lawful and as even as the strategy `balance` promises."""
    if balance not in _EVEN_IN_EACH_TOPIC:
        return _STICKY.assign(_with_claims(known, known.spec.partitions, known.spec.members))
    held: dict[str, list[TopicPartition]] = {member.member_id: [] for member in known.spec.members}
    for topic, subscribers in subscribers_by_topic(known.spec, known.spec.members).items():
        alone = (MemberSubscription(known.spec.members[place].member_id, (topic,)) for place in subscribers)
        answer = _STICKY.assign(_with_claims(known, {topic: known.spec.partition_count(topic)}, alone))
        for member_id, partitions in answer.members.items():
            held[member_id] += partitions
    return GroupAssignment({member_id: tuple(sorted(partitions)) for member_id, partitions in held.items()})


def _with_claims(
    known: AssignmentInputs, partitions: Mapping[str, int], members: Iterable[MemberSubscription]
) -> GroupSpec:
    """The group with its actual owners as what members have; racks are no rule that an owner breaks."""
    listed = tuple(members)
    subscriptions = dict(zip((one.member_id for one in listed), distinct_subscriptions(listed), strict=True))
    held: dict[str, list[TopicPartition]] = defaultdict(list)
    for at, member_ids in known.owners.items():
        keeper = next((one for one in member_ids if at[0] in subscriptions.get(one, ())), None)
        if keeper is not None:
            held[keeper].append(at)
    claimed = (
        MemberSubscription(one.member_id, one.topics, owned=tuple(held[one.member_id]), generation_id=1)
        for one in listed
    )
    return GroupSpec(tuple(claimed), partitions)
