"""Collect the inputs for the evaluations of an assignment: the members, the owners and the partition counts.

In a classic group, the owner of a partition is the member to which the leader assigned the partition. In a KIP-848
group, the owner is the member whose target contains the partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from assignors import GroupAssignment, GroupSpec, TopicPartition
from streaming.evaluation.assignment.group_spec import (
    Owners,
    actual_owners,
    group_spec,
    target_owners,
    target_spec,
)
from streaming.evaluation.assignment.sampled_topics import changed_topics, pending_topics, unknown_topics
from streaming.group.not_known import unknown_inputs
from streaming.group.snapshot import GroupSnapshot


@dataclass(frozen=True)
class AssignmentInputs:
    """The recorded values of one generation: the inputs of each evaluation of the assignment.

    `owners` contains every owner in the assignment, even if the owner is not a member of the group. `unknown_topics`
    are subscribed topics whose partition count is unknown. `changed_topics` are topics whose partition count can differ
    from the count that the leader used. `stale_topics` are topics whose last sample is older than the record and
    contradicts the record (`sampled_topics`). `unknown_inputs` names the unknown values of members, with the names from
    `group.not_known`.
    """

    spec: GroupSpec
    owners: Owners
    unknown_topics: tuple[str, ...] = ()
    changed_topics: tuple[str, ...] = ()
    stale_topics: tuple[str, ...] = ()
    unknown_inputs: tuple[str, ...] = ()

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
    if snapshot.classic is not None:
        spec, owners = group_spec(snapshot, snapshot.classic), actual_owners(snapshot.classic)
    else:
        spec, owners = target_spec(snapshot), target_owners(snapshot)
    unknown = unknown_topics(snapshot, owners)
    stale = tuple(topic for topic in pending_topics(snapshot, owners) if topic not in unknown)
    changed = () if unknown else changed_topics(snapshot, owners)
    return AssignmentInputs(spec, owners, unknown, changed, stale, unknown_inputs(snapshot))
