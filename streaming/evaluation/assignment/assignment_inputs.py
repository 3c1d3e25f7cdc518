"""Collect the inputs for the evaluations of an assignment: the members, the owners and the partition counts.

In a classic group, the owner of a partition is the member to which the leader assigned the partition. In a KIP-848
group, the owner is the member whose target contains the partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from assignors import GroupAssignment, GroupSpec, MemberSubscription, TopicPartition
from assignors.racks import member_rack
from streaming.evaluation.assignment.leader import JAVA, leader_of
from streaming.evaluation.assignment.sampled_topics import (
    changed_topics,
    pending_topics,
    unknown_topics,
    why_racks_are_uncertain,
)
from streaming.group.claims import member_claim
from streaming.group.members import GroupMember, members
from streaming.group.not_known import unknown_inputs
from streaming.group.snapshot import GroupSnapshot, known_topics
from streaming.protocol.classic import ClassicMember, GroupMetadata

GENERATION_SINCE = 2
"""The first version of the subscription format with the field `generationId` (KIP-792)."""
RACKS_SINCE = 3
"""The first version of the subscription format with the field `rackId` (KIP-881).

Leaders that send an older version ignore racks.
"""

Owners = Mapping[TopicPartition, tuple[str, ...]]
"""The owners of each partition. A valid assignment has one owner per partition."""


@dataclass(frozen=True)
class AssignmentInputs:
    """The recorded values of one generation: the inputs of each evaluation of the assignment.

    `owners` contains every owner in the assignment, even if the owner is not a member of the group. `unknown_topics`
    are subscribed topics whose partition count is unknown. `changed_topics` are topics whose partition count can differ
    from the leader's count. `stale_topics` are topics whose last sample is older than the record and contradicts the
    record (`sampled_topics`). `unknown_inputs` contains names from `group.not_known`. `uncertain_racks` is the reason
    why the leader possibly used racks that differ from `spec.racks`. It is empty if the racks are certain, if no member
    has a rack, or if the leader does not read the racks of members. `not_revoked` contains the partitions in the
    `ownedPartitions` of classic members. These members possibly did not revoke the partitions before they joined.
    """

    spec: GroupSpec
    owners: Owners
    unknown_topics: tuple[str, ...] = ()
    changed_topics: tuple[str, ...] = ()
    stale_topics: tuple[str, ...] = ()
    unknown_inputs: tuple[str, ...] = ()
    uncertain_racks: str = ""
    not_revoked: frozenset[TopicPartition] = frozenset()

    @cached_property
    def assignment(self) -> GroupAssignment:
        """The partitions of each member, and of each owner that is not a member."""
        held: dict[str, list[TopicPartition]] = {member.member_id: [] for member in self.spec.members}
        for topic_partition, member_ids in sorted(self.owners.items()):
            for member_id in member_ids:
                held.setdefault(member_id, []).append(topic_partition)
        return GroupAssignment({member_id: tuple(partitions) for member_id, partitions in held.items()})

    @cached_property
    def first_owners(self) -> Mapping[TopicPartition, str]:
        """The first owner of each partition. A what-if uses only one owner per partition."""
        return {partition: member_ids[0] for partition, member_ids in self.owners.items()}


def assignment_inputs(snapshot: GroupSnapshot) -> AssignmentInputs:
    """Return the inputs for the evaluations of a snapshot's assignment.

    >>> assignment_inputs(GroupSnapshot("g")).assignment
    GroupAssignment(members={})
    """
    uncertain_racks, not_revoked = "", frozenset[TopicPartition]()
    if snapshot.classic is not None:
        joined = (member.subscription for member in snapshot.classic.members)
        not_revoked = frozenset(at for subscription in joined if subscription for at in subscription.owned)
        spec, owners = group_spec(snapshot, snapshot.classic), actual_owners(snapshot.classic)
        if _reads_fields_of(RACKS_SINCE, snapshot.classic) and any(map(member_rack, spec.members)):
            uncertain_racks = why_racks_are_uncertain(snapshot)
    else:
        spec, owners = target_spec(snapshot), target_owners(snapshot)
    unknown = unknown_topics(snapshot, owners)
    stale = tuple(topic for topic in pending_topics(snapshot, owners) if topic not in unknown)
    changed = () if unknown else changed_topics(snapshot, owners)
    return AssignmentInputs(
        spec, owners, unknown, changed, stale, unknown_inputs(snapshot), uncertain_racks, not_revoked
    )


def group_spec(snapshot: GroupSnapshot, metadata: GroupMetadata) -> GroupSpec:
    """Return the arguments for `ConsumerPartitionAssignor.assign`. The cluster metadata comes from samples."""
    is_java = leader_of(metadata).implementation == JAVA
    reads_id = _reads_fields_of(GENERATION_SINCE, metadata)
    return GroupSpec(
        members=tuple(
            _member_subscription(member, metadata.protocol, is_java_leader=is_java, reads_generation_id=reads_id)
            for member in metadata.members
        ),
        partitions=sampled_partitions(snapshot),
        racks=sampled_racks(snapshot) if _reads_fields_of(RACKS_SINCE, metadata) else {},
    )


def _reads_fields_of(version: int, metadata: GroupMetadata) -> bool:
    """Return False if the leader's own subscription has a version below `version`. If it is unknown, return True."""
    leader = next((member for member in metadata.members if member.member_id == metadata.leader), None)
    subscription = leader.subscription if leader else None
    return subscription is None or subscription.version >= version


def sampled_partitions(snapshot: GroupSnapshot) -> Mapping[str, int]:
    """Return the sampled partition count of each existing topic."""
    return {topic: sampled.partitions for topic, sampled in snapshot.topics.items() if sampled.partitions}


def sampled_racks(snapshot: GroupSnapshot) -> Mapping[str, tuple[tuple[str | None, ...], ...]]:
    """Return the racks of the replicas of each partition, by topic. The result omits topics without racks."""
    return {topic: sampled.racks for topic, sampled in snapshot.topics.items() if sampled.partitions and sampled.racks}


def _member_subscription(
    member: ClassicMember, strategy: str | None, *, is_java_leader: bool, reads_generation_id: bool
) -> MemberSubscription:
    """Return a member with its claim (`group.claims`).

    If two members claim the same partition, the leader compares the generations of the two claims. If the leader knows
    the field `generationId`, it uses this field for the claim that it reads first, even if the member does not send the
    field. Leaders that do not know the field use the generations in both claims.
    """
    subscription = member.subscription
    if subscription is None:
        return MemberSubscription(member.member_id, known_topics(member), instance_id=member.group_instance_id)
    claim = member_claim(subscription, strategy, is_java_leader=is_java_leader)
    joined = MemberSubscription(
        member.member_id,
        subscription.topics,
        instance_id=member.group_instance_id,
        rack=subscription.rack_id,
        owned=claim.partitions,
        generation_id=subscription.generation_id,
    )
    if claim.generation_id is None:
        return replace(joined, user_data_version=0)
    if claim.generation_id == subscription.generation_id:
        return joined
    rival_generation = subscription.generation_id if reads_generation_id else None
    return replace(joined, generation_id=claim.generation_id, subscription_generation=rival_generation)


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
    if member.subscribed_topics is not None:
        return member.subscribed_topics
    return tuple(dict.fromkeys(topic for topic, _ in member.target or ()))


def target_owners(snapshot: GroupSnapshot) -> Owners:
    """Return the owners of each partition in the target assignment. The owners are sorted by member id."""
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
