"""The inputs the group leader had when it assigned, rebuilt from what it was sent."""

from __future__ import annotations

from collections.abc import Mapping

from assignors import GroupSpec, MemberSubscription, TopicPartition
from streaming.events import TopicMetadata
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol import UndecodableRecord
from streaming.protocol.classic import ClassicMember, GroupMetadata, sticky_user_data

Owners = Mapping[TopicPartition, tuple[str, ...]]
"""Who holds each partition. One member in a lawful assignment; several where the law is broken."""


def group_spec(snapshot: GroupSnapshot, metadata: GroupMetadata) -> GroupSpec:
    """What `ConsumerPartitionAssignor.assign` was called with, with the cluster metadata known to us."""
    known = {topic: sampled for topic, sampled in snapshot.topics.items() if sampled.partitions}
    return GroupSpec(
        members=tuple(_member_subscription(member) for member in metadata.members),
        partitions={topic: sampled.partitions or 0 for topic, sampled in known.items()},
        racks={topic: sampled.racks for topic, sampled in known.items() if sampled.racks},
    )


def _member_subscription(member: ClassicMember) -> MemberSubscription:
    subscription = member.subscription
    if subscription is None:
        return MemberSubscription(member.member_id, (), instance_id=member.group_instance_id)
    owned, generation_id = subscription.owned, subscription.generation_id
    if not owned and subscription.user_data:
        owned, generation_id = _sticky_claim(subscription.user_data, generation_id)
    return MemberSubscription(
        member.member_id,
        subscription.topics,
        instance_id=member.group_instance_id,
        rack=subscription.rack_id,
        owned=tuple(owned),
        generation_id=generation_id,
    )


def _sticky_claim(user_data: bytes, generation_id: int) -> tuple[tuple[TopicPartition, ...], int]:
    try:
        owned, claimed_generation = sticky_user_data(user_data)
    except UndecodableRecord:  # user data of another assignor: it claims nothing we can read
        return (), generation_id
    return tuple(owned), generation_id if claimed_generation is None else claimed_generation


def actual_owners(metadata: GroupMetadata) -> Owners:
    """Who was assigned each partition, by the leader's own assignment bytes; owners sorted."""
    owners: dict[TopicPartition, list[str]] = {}
    for member in metadata.members:
        for topic, partition in member.assignment.partitions if member.assignment else ():
            owners.setdefault((topic, partition), []).append(member.member_id)
    return {topic_partition: tuple(sorted(holders)) for topic_partition, holders in owners.items()}


def unknown_topics(snapshot: GroupSnapshot) -> tuple[str, ...]:
    """Subscribed topics whose partition count is not known as of the current record, sorted.

    A topic that was absent before the record was written may exist since: only a later sample proves it absent.
    """
    return tuple(topic for topic in snapshot.subscribed_topics() if not _is_known(snapshot.topics.get(topic), snapshot))


def _is_known(sampled: TopicMetadata | None, snapshot: GroupSnapshot) -> bool:
    if sampled is None or snapshot.position is None:
        return False
    return sampled.partitions is not None or sampled.sampled_at_ms >= snapshot.position.timestamp_ms
