"""Reconstruct the inputs of the group leader: members, subscriptions, partition counts and racks."""

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
"""The first version of the subscription format with the field `rackId` (KIP-881)."""

Owners = Mapping[TopicPartition, tuple[str, ...]]
"""The owners of each partition. A valid assignment has one owner per partition."""


def group_spec(snapshot: GroupSnapshot, metadata: GroupMetadata) -> GroupSpec:
    """Return the arguments for `ConsumerPartitionAssignor.assign`. The cluster metadata comes from samples."""
    reads_only_java_form = metadata.protocol == "sticky" and leader_of(metadata).implementation == JAVA
    return GroupSpec(
        members=tuple(_member_subscription(member, reads_only_java_form) for member in metadata.members),
        partitions=sampled_partitions(snapshot),
        racks=sampled_racks(snapshot) if _reads_racks(metadata) else {},
    )


def _reads_racks(metadata: GroupMetadata) -> bool:
    """Return True if the leader uses the racks of members. Old client libraries ignore racks."""
    leader = next((member for member in metadata.members if member.member_id == metadata.leader), None)
    return leader is None or leader.subscription is None or leader.subscription.version >= RACKS_SINCE


def sampled_partitions(snapshot: GroupSnapshot) -> Mapping[str, int]:
    """Return the sampled partition count of each topic. The result omits topics that did not exist at the sample."""
    return {topic: sampled.partitions for topic, sampled in snapshot.topics.items() if sampled.partitions}


def sampled_racks(snapshot: GroupSnapshot) -> Mapping[str, tuple[tuple[str | None, ...], ...]]:
    """Return the racks of the replicas of each partition, by topic. The result omits topics without racks."""
    return {topic: sampled.racks for topic, sampled in snapshot.topics.items() if sampled.partitions and sampled.racks}


def _member_subscription(member: ClassicMember, reads_only_java_form: bool) -> MemberSubscription:
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
    return _with_sticky_claim(joined, subscription.user_data, reads_only_java_form)


def _with_sticky_claim(
    joined: MemberSubscription, user_data: bytes | None, reads_only_java_form: bool
) -> MemberSubscription:
    """Return a copy of the member. The partitions and the generation of the copy come from the claim in the user data.

    A `sticky` member revokes its partitions before it joins, and claims them in its user data. Version 0 of the user
    data has no generation. The user data of kafka-python has a different format. A Java leader ignores the claims of
    kafka-python members.
    """
    in_own_form = None if reads_only_java_form else kafka_python_sticky_user_data(user_data)
    owned, generation_id = in_own_form if in_own_form and in_own_form[0] else sticky_user_data(user_data)
    if generation_id is None:
        return replace(joined, owned=owned, user_data_version=0)
    return replace(joined, owned=owned, generation_id=generation_id, subscription_generation=joined.generation_id)


def actual_owners(metadata: GroupMetadata) -> Owners:
    """Return the owners of each partition in the leader's assignment. The owners are sorted by member id."""
    by_id = sorted(metadata.members, key=lambda member: member.member_id)
    return _owners((member.member_id, member.assignment.partitions if member.assignment else ()) for member in by_id)


def target_spec(snapshot: GroupSnapshot) -> GroupSpec:
    """Return the inputs of a strategy for a KIP-848 group. Each member owns the partitions of its target."""
    return GroupSpec(
        members=tuple(
            MemberSubscription(
                member.member_id,
                _topics_or_target_topics(member),
                instance_id=member.group_instance_id,
                rack=member.rack_id,
                owned=member.target or (),
            )
            for member in members(snapshot)
        ),
        partitions=sampled_partitions(snapshot),
        racks=sampled_racks(snapshot),
    )


def _topics_or_target_topics(member: GroupMember) -> tuple[str, ...]:
    """Return the subscribed topics of a member.

    If the subscribed topics are unknown, return the topics in the member's target.
    """
    if member.subscribed_topics is not None:
        return member.subscribed_topics
    return tuple(dict.fromkeys(topic for topic, _ in member.target or ()))


def target_owners(snapshot: GroupSnapshot) -> Owners:
    """Return the owners of each partition in the target assignment. The owners are sorted by member id.

    In a classic group, the target assignment is the assignment of the leader.
    """
    return _owners((member.member_id, member.target or ()) for member in members(snapshot))


def _owners(partitions_by_member: Iterable[tuple[str, Iterable[TopicPartition]]]) -> Owners:
    """Return the owners of each partition. All partitions with the same single owner share one tuple object."""
    owners: dict[TopicPartition, tuple[str, ...]] = {}
    for member_id, partitions in partitions_by_member:
        only_owner = (member_id,)
        for at in partitions:
            owners[at] = (*owners[at], member_id) if at in owners else only_owner
    return owners


def assigned_partitions(partitions: Iterable[TopicPartition]) -> Mapping[str, int]:
    """Return the minimum partition count of each assigned topic: its highest assigned partition number plus one.

    >>> assigned_partitions([("t", 2), ("u", 0), ("t", 0)])
    {'t': 3, 'u': 1}
    """
    counts: dict[str, int] = {}
    for topic, partition in partitions:
        if partition >= counts.get(topic, 0):
            counts[topic] = partition + 1
    return counts
