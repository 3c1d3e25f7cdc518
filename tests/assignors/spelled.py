"""A short notation for groups and assignments: ``A="t0 t1"`` is member A with partitions 0 and 1 of topic t."""

from __future__ import annotations

from collections.abc import Mapping

from assignors.model import GroupAssignment, GroupSpec, MemberSubscription, TopicPartition


def group(partitions: Mapping[str, int], **subscriptions: str) -> GroupSpec:
    """Return a group. Each letter of a subscription is a topic."""
    members = (MemberSubscription(name, tuple(topics)) for name, topics in subscriptions.items())
    return GroupSpec(tuple(members), partitions)


def held(**members: str) -> GroupAssignment:
    """Return an assignment from the partitions of each member, separated by blanks."""
    return GroupAssignment(
        {name: tuple((word[0], int(word[1:])) for word in of.split()) for name, of in members.items()}
    )


def owners(**members: str) -> dict[TopicPartition, str]:
    """Return the owner of each partition, from the same notation as ``held``."""
    return {partition: name for name, of in held(**members).members.items() for partition in of}


def of_too_many_subscriptions() -> GroupSpec:
    """Return a group with too many different subscriptions: each member leaves out a different topic."""
    topics = [f"t{number:03}" for number in range(600)]
    members = (
        MemberSubscription(f"c{number:03}", tuple(topics[:number] + topics[number + 1 :]))
        for number in range(len(topics))
    )
    return GroupSpec(tuple(members), dict.fromkeys(topics, 1))
