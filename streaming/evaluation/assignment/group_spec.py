"""The inputs the group leader had when it assigned, rebuilt from what it was sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from assignors import GroupSpec, MemberSubscription, TopicPartition
from streaming.evaluation.assignment.leader import JAVA, leader_of
from streaming.group.members import GroupMember, members
from streaming.group.snapshot import GroupSnapshot, known_topics
from streaming.protocol.classic import ClassicMember, GroupMetadata
from streaming.protocol.consumer_protocol import kafka_python_sticky_user_data, sticky_user_data

RACKS_SINCE = 3
"""The first version of a subscription that has `rackId` (KIP-881)."""

Owners = Mapping[TopicPartition, tuple[str, ...]]
"""Who holds each partition. One member in a lawful assignment; several where the law is broken."""


def group_spec(snapshot: GroupSnapshot, metadata: GroupMetadata) -> GroupSpec:
    """What `ConsumerPartitionAssignor.assign` was called with, with the cluster metadata known to us."""
    reads_javas_form_alone = metadata.protocol == "sticky" and leader_of(metadata).implementation == JAVA
    return GroupSpec(
        members=tuple(_member_subscription(member, reads_javas_form_alone) for member in metadata.members),
        partitions=sampled_partitions(snapshot),
        racks=sampled_racks(snapshot) if _reads_racks(metadata) else {},
    )


def _reads_racks(metadata: GroupMetadata) -> bool:
    """Whether the leader knew the racks of members: an older library reads a newer member's bytes without them."""
    leader = next((member for member in metadata.members if member.member_id == metadata.leader), None)
    return leader is None or leader.subscription is None or leader.subscription.version >= RACKS_SINCE


def sampled_partitions(snapshot: GroupSnapshot) -> Mapping[str, int]:
    """Partition counts of the topics that were there when they were sampled."""
    return {topic: sampled.partitions for topic, sampled in snapshot.topics.items() if sampled.partitions}


def sampled_racks(snapshot: GroupSnapshot) -> Mapping[str, tuple[tuple[str | None, ...], ...]]:
    """Racks of each partition's replicas, of topics that were there and have any."""
    return {topic: sampled.racks for topic, sampled in snapshot.topics.items() if sampled.partitions and sampled.racks}


def _member_subscription(member: ClassicMember, reads_javas_form_alone: bool) -> MemberSubscription:
    subscription = member.subscription
    if subscription is None:
        return MemberSubscription(member.member_id, known_topics(member), instance_id=member.group_instance_id)
    joined = MemberSubscription(
        member.member_id,
        subscription.topics,
        instance_id=member.group_instance_id,
        rack=subscription.rack_id,
        owned=subscription.owned,
        generation_id=subscription.generation_id,
    )
    claims_in_user_data = not subscription.owned and bool(subscription.user_data)
    if not claims_in_user_data:
        return joined
    return _with_sticky_claim(joined, subscription.user_data, reads_javas_form_alone)


def _with_sticky_claim(
    joined: MemberSubscription, user_data: bytes | None, reads_javas_form_alone: bool
) -> MemberSubscription:
    """`sticky` revokes before it joins and claims in its user data; version 0 of that names no generation.

    kafka-python has a form of its own. A Java leader cannot read that and forgets the claim; otherwise it counts.
    """
    in_own_form = None if reads_javas_form_alone else kafka_python_sticky_user_data(user_data)
    owned, generation_id = in_own_form if in_own_form and in_own_form[0] else sticky_user_data(user_data)
    if generation_id is None:
        return replace(joined, owned=owned, user_data_version=0)
    return replace(joined, owned=owned, generation_id=generation_id, subscription_generation=joined.generation_id)


def actual_owners(metadata: GroupMetadata) -> Owners:
    """Who was assigned each partition, by the leader's own assignment bytes; owners sorted."""
    by_id = sorted(metadata.members, key=lambda member: member.member_id)
    return _owners((member.member_id, member.assignment.partitions if member.assignment else ()) for member in by_id)


def target_spec(snapshot: GroupSnapshot) -> GroupSpec:
    """The group as a coordinator sees it (KIP-848), the targets as what its members have now."""
    return GroupSpec(
        members=tuple(
            MemberSubscription(
                member.member_id,
                _topics_or_held(member),
                instance_id=member.group_instance_id,
                rack=member.rack_id,
                owned=member.target or (),
            )
            for member in members(snapshot)
        ),
        partitions=sampled_partitions(snapshot),
        racks=sampled_racks(snapshot),
    )


def _topics_or_held(member: GroupMember) -> tuple[str, ...]:
    """What a member subscribes to; where nobody tells that, the topics it shall have, as for classic members."""
    if member.subscribed_topics is not None:
        return member.subscribed_topics
    return tuple(dict.fromkeys(topic for topic, _ in member.target or ()))


def target_owners(snapshot: GroupSnapshot) -> Owners:
    """Who shall have each partition; owners sorted. Of a classic group that is who was assigned it."""
    return _owners((member.member_id, member.target or ()) for member in members(snapshot))


def _owners(held: Iterable[tuple[str, Iterable[TopicPartition]]]) -> Owners:
    """Who has each partition, from what each member has; one tuple serves all that a member has alone."""
    owners: dict[TopicPartition, tuple[str, ...]] = {}
    for member_id, partitions in held:
        alone = (member_id,)
        for at in partitions:
            owners[at] = (*owners[at], member_id) if at in owners else alone
    return owners


def assigned_partitions(held: Iterable[TopicPartition]) -> Mapping[str, int]:
    """How many partitions each topic must have had for the assignment to be possible: the highest number, and one.

    >>> assigned_partitions([("t", 2), ("u", 0), ("t", 0)])
    {'t': 3, 'u': 1}
    """
    counts: dict[str, int] = {}
    for topic, partition in held:
        if partition >= counts.get(topic, 0):
            counts[topic] = partition + 1
    return counts
