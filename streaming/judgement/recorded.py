"""What a generation's records give to every judgement of its assignment alike: inputs, owners, and what is doubtful.

Owners are those of the decision: of a classic group what its leader assigned, of a KIP-848 group the targets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from assignors import GroupAssignment, GroupSpec, TopicPartition
from streaming.events import TopicMetadata
from streaming.group.snapshot import GroupSnapshot
from streaming.judgement.group_spec import (
    Owners,
    actual_owners,
    group_spec,
    target_owners,
    target_spec,
    unknown_topics,
)


@dataclass(frozen=True)
class Recorded:
    """One generation as recorded. `owners` are those that the assignment names, strangers to the group included.

    `unknown_topics` are subscribed ones of unknown size. `changed_topics` had, whoever assigned, another one.
    """

    spec: GroupSpec
    owners: Owners
    unknown_topics: tuple[str, ...] = ()
    changed_topics: tuple[str, ...] = ()

    @cached_property
    def assignment(self) -> GroupAssignment:
        """The owners as an assignment: every member of the group, and who else was named."""
        held: dict[str, list[TopicPartition]] = {member.member_id: [] for member in self.spec.members}
        for topic_partition, member_ids in sorted(self.owners.items()):
            for member_id in member_ids:
                held.setdefault(member_id, []).append(topic_partition)
        return GroupAssignment({member_id: tuple(partitions) for member_id, partitions in held.items()})


def recorded(snapshot: GroupSnapshot) -> Recorded:
    """What every judgement goes by; found once for all of them.

    >>> recorded(GroupSnapshot("g")).assignment
    GroupAssignment(members={})
    """
    if snapshot.classic is not None:
        spec, owners = group_spec(snapshot, snapshot.classic), actual_owners(snapshot.classic)
    else:
        spec, owners = target_spec(snapshot), target_owners(snapshot)
    unknown = unknown_topics(snapshot, owners)
    return Recorded(spec, owners, unknown, () if unknown else _changed_topics(snapshot, owners))


def _changed_topics(snapshot: GroupSnapshot, owners: Iterable[TopicPartition]) -> tuple[str, ...]:
    """Topics whose count, sampled after the record, shows that whoever assigned knew another one; sorted."""
    later = {topic: sampled for topic, sampled in snapshot.topics.items() if _is_later(snapshot, sampled)}
    held: Mapping[str, list[int]] = defaultdict(list)
    for topic, partition in owners if later else ():
        held[topic].append(partition)
    return tuple(
        topic
        for topic in snapshot.subscribed_topics()
        if topic in later and _has_changed(later[topic].partitions or 0, sorted(held.get(topic, ())))
    )


def _is_later(snapshot: GroupSnapshot, sampled: TopicMetadata) -> bool:
    """A polled group's assignment is older than the poll that saw it, and nobody knows how much."""
    if snapshot.position is None:
        return False
    return snapshot.is_polled or sampled.sampled_at_ms > snapshot.position.timestamp_ms


def _has_changed(partitions: int, held: Sequence[int]) -> bool:
    has_shrunk = bool(held) and held[-1] >= partitions
    has_grown = 0 < len(held) < partitions and list(held) == list(range(len(held)))
    return has_shrunk or has_grown
