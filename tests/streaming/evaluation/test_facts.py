"""Tests of the owners of partitions in a report."""

from __future__ import annotations

from streaming.evaluation.facts import GroupFacts, Members, Membership
from streaming.events import CONSUMER, CurrentWritten, Position, TopicMetadata, TopicsNamed, TopicsSampled
from streaming.group.listing import DescribedGroup, DescribedMember, HeldTopic
from streaming.group.snapshot import GroupSnapshot
from streaming.polled.descriptions import described_event
from streaming.protocol.modern import MemberAssignment
from tests.streaming.groups import advanced, at, current, epoch, joined, modern_member, target, target_epoch

NAMED = TopicsSampled({"orders": TopicMetadata(2, 99_000, topic_id="id")})
POLLED = Position(-1, 0, 0)


def facts(snapshot: GroupSnapshot) -> GroupFacts:
    return GroupFacts("g", Membership(snapshot.group_type, state=snapshot.state), members=Members(snapshot))


def polled(*members: DescribedMember, state: str) -> GroupFacts:
    event, _ = described_event("g", DescribedGroup("consumer", state, "consumer", "uniform", members, 4, 4), POLLED)
    return facts(advanced([event, NAMED]))


def described(name: str, held: tuple[int, ...], wanted: tuple[int, ...], member_epoch: int = 4) -> DescribedMember:
    def of(numbers: tuple[int, ...]) -> tuple[HeldTopic, ...]:
        return (HeldTopic("id", "orders", numbers),) if numbers else ()

    return DescribedMember(
        name, name, "/h", member_epoch=member_epoch, subscribed_topics=("orders",), held=of(held), target=of(wanted)
    )


def test_a_member_owns_a_partition_until_it_has_revoked_the_partition() -> None:
    """KIP-848: member a hangs, and b waits for orders-1. Before, orders-1 had no owner."""
    revoking = MemberAssignment(3, 2, "UnrevokedPartitions", (("id", (0,)),), (("id", (1,)),))
    targets = [target(3, "a", (("id", (0,)),)), target(4, "b", (("id", (1,)),)), target_epoch(5, 4)]
    currents = [CurrentWritten(at(6), CONSUMER, "a", revoking), current(7, "b", (), 4, "UnreleasedPartitions")]
    found = facts(advanced([joined(0, "a"), joined(1, "b"), epoch(2, 4), *targets, *currents, NAMED]))
    assert found.membership.state == "Reconciling"
    assert found.are_owners_known
    assert {at: one.member_id for at, one in found.members.owners.items()} == {("orders", 0): "a", ("orders", 1): "a"}


def test_the_topic_of_a_partition_that_a_member_must_still_revoke_is_a_topic_of_the_group() -> None:
    """KIP-848: the member unsubscribed from the topic. Until it revokes its partitions, nobody else gets them."""
    revoking = MemberAssignment(3, 2, "UnrevokedPartitions", (), (("id", (0,)),))
    events = [joined(0, "m", modern_member(["sales"])), epoch(1), CurrentWritten(at(2), CONSUMER, "m", revoking)]
    found = facts(advanced([*events, TopicsNamed(at(3), {"id": "orders"})]))
    assert found.topics == {"orders", "sales"}


def test_in_the_polling_mode_the_owner_is_unknown_while_a_member_waits_for_a_partition() -> None:
    """The responses do not contain pending revocations. Before, orders-1 had no owner although a still owned it."""
    found = polled(described("a", (0,), (0,), 3), described("b", (), (1,)), state="Reconciling")
    assert not found.are_owners_known
    assert found.members.owners.keys() == {("orders", 0)}
    assert polled(described("a", (0,), (0,)), described("b", (1,), (1,)), state="Stable").are_owners_known
