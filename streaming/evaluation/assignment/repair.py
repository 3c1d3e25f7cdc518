"""Find the valid assignment that is most similar to the actual assignment.

The valid assignment shows which partitions are misplaced. If a strategy has many correct results, a partition can have
a different owner in each result. So the monitor *repairs* the actual assignment: it runs a sticky strategy in which
each member claims its actual partitions. A sticky strategy moves only the partitions that must move. Rules:

1. If a partition has several owners, the repair uses only the first owner that is a subscribed member.
2. If the strategy promises balance within each topic (`range`), each topic is repaired separately.
3. If a violation names a partition, that partition is misplaced. A violation of the balance rule names no partition. If
   the balance rule is broken, the partitions that the repair moves are misplaced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from assignors import BUILT_IN, GroupAssignment, GroupSpec, MemberSubscription, TopicPartition
from assignors.subscriptions import distinct_subscriptions, subscribers_by_topic
from streaming.evaluation.assignment.assignment_inputs import AssignmentInputs

_STICKY = BUILT_IN["sticky"]
_EVEN_IN_EACH_TOPIC = frozenset({"range", "server-range"})


def repair_assignment(inputs: AssignmentInputs, balance: str | None) -> GroupAssignment:
    """Return the most similar valid assignment. It follows the balance rule of the strategy `balance`."""
    if balance not in _EVEN_IN_EACH_TOPIC:
        return _STICKY.assign(_claiming_owned(inputs, inputs.spec.partitions, inputs.spec.members))
    held: dict[str, list[TopicPartition]] = {member.member_id: [] for member in inputs.spec.members}
    for topic, subscribers in subscribers_by_topic(inputs.spec, inputs.spec.members).items():
        members = (MemberSubscription(inputs.spec.members[place].member_id, (topic,)) for place in subscribers)
        repaired = _STICKY.assign(_claiming_owned(inputs, {topic: inputs.spec.partition_count(topic)}, members))
        for member_id, partitions in repaired.members.items():
            held[member_id] += partitions
    return GroupAssignment({member_id: tuple(sorted(partitions)) for member_id, partitions in held.items()})


def _claiming_owned(
    inputs: AssignmentInputs, partitions: Mapping[str, int], members: Iterable[MemberSubscription]
) -> GroupSpec:
    """Return the group, with the actual partitions as claims. It has no racks, because no rule depends on racks."""
    listed = tuple(members)
    subscriptions = dict(zip((one.member_id for one in listed), distinct_subscriptions(listed), strict=True))
    held: dict[str, list[TopicPartition]] = defaultdict(list)
    for at, member_ids in inputs.owners.items():
        keeper = next((one for one in member_ids if at[0] in subscriptions.get(one, ())), None)
        if keeper is not None:
            held[keeper].append(at)
    claimed = (
        MemberSubscription(one.member_id, one.topics, owned=tuple(held[one.member_id]), generation_id=1)
        for one in listed
    )
    return GroupSpec(tuple(claimed), partitions)
