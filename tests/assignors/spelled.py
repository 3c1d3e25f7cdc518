"""Groups and assignments written in few letters: ``A="t0 t1"`` is member A with partitions 0 and 1 of topic t."""

from __future__ import annotations

from collections.abc import Mapping

from assignors.model import GroupAssignment, GroupSpec, MemberSubscription, TopicPartition


def group(partitions: Mapping[str, int], **subscriptions: str) -> GroupSpec:
    """Return a group; each member's topics are one letter each."""
    members = (MemberSubscription(name, tuple(topics)) for name, topics in subscriptions.items())
    return GroupSpec(tuple(members), partitions)


def held(**members: str) -> GroupAssignment:
    """Return an assignment: for each member its partitions, by words."""
    return GroupAssignment(
        {name: tuple((word[0], int(word[1:])) for word in of.split()) for name, of in members.items()}
    )


def owners(**members: str) -> dict[TopicPartition, str]:
    """Return the same the other way round: each partition's owner."""
    return {partition: name for name, of in held(**members).members.items() for partition in of}


def of_too_many_subscriptions() -> GroupSpec:
    """Return a group of which the fairest assignment is not searched for: each member leaves out a topic of its own."""
    topics = [f"t{number:03}" for number in range(600)]
    members = (
        MemberSubscription(f"c{number:03}", tuple(topics[:number] + topics[number + 1 :]))
        for number in range(len(topics))
    )
    return GroupSpec(tuple(members), dict.fromkeys(topics, 1))
