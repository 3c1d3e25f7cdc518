"""Whose program assigned, told from shapes that real clients' records have (Kafka 4.2 broker, default settings)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streaming.judgement.leader import JAVA, KAFKA_PYTHON, LIBRDKAFKA, UNKNOWN_LEADER, leader_of
from streaming.protocol.classic import Assignment, ClassicMember, GroupMetadata, Subscription
from tests.streaming.groups import member, metadata

Shape = tuple[int, bytes | None]
"""Version and user data."""

SHAPES: list[tuple[str, Shape, Shape, str, str]] = [
    ("consumer-g-1-5f", (3, None), (3, None), JAVA, "Java 4.2, range"),
    ("svc-5f", (3, b"\x00\x00\x00\x01"), (3, None), JAVA, "Java 4.2, sticky: its claim is in the user data"),
    ("svc-5f", (1, None), (1, None), JAVA, "Java 2.4 to 3.1"),
    ("svc-5f", (0, None), (0, None), UNKNOWN_LEADER, "Java before 2.4 and others are alike"),
    ("rdkafka-5f", (3, b""), (0, b""), LIBRDKAFKA, "librdkafka 2.16, range"),
    ("svc-5f", (3, b"\x00"), (0, b"\x00"), LIBRDKAFKA, "librdkafka 2.16, cooperative-sticky, a client.id of its own"),
    ("rdkafka-5f", (1, b""), (0, b""), LIBRDKAFKA, "an older one, told by its member id"),
    ("svc-5f", (0, b""), (0, b""), KAFKA_PYTHON, "kafka-python 3.0, range"),
    ("svc-5f", (0, b"\x00\x00"), (0, b""), KAFKA_PYTHON, "kafka-python 3.0, sticky"),
    ("svc-5f", (1, b""), (1, b""), KAFKA_PYTHON, "kafka-python 3.0, cooperative-sticky"),
    ("consumer-g-1-5f", (3, b""), (3, b""), UNKNOWN_LEADER, "a name like Java's is no evidence"),
    ("svc-5f", (3, None), (0, None), UNKNOWN_LEADER, "franz-go and others"),
    ("svc-5f", (3, None), (3, b""), UNKNOWN_LEADER, "a shape nobody has shown us"),
]


def led(member_id: str, subscription: Shape, assignment: Shape) -> GroupMetadata:
    """Return a group that this member leads, with a follower who wrote its own subscription."""
    leader = replace(
        member(member_id),
        subscription=Subscription(subscription[0], ("orders",), subscription[1], (), -1, None),
        assignment=Assignment(assignment[0], (("orders", 0),), assignment[1]),
    )
    follower = replace(member("z"), assignment=Assignment(assignment[0], (), assignment[1]))
    return metadata(1, [leader, follower])


@pytest.mark.parametrize(
    ("member_id", "subscription", "assignment", "implementation", "why"), SHAPES, ids=[why for *_, why in SHAPES]
)
def test_the_leaders_program_is_told_from_what_it_wrote(
    member_id: str, subscription: Shape, assignment: Shape, implementation: str, why: str
) -> None:
    """Only the leader's matters, and users set client.id as they like."""
    found = leader_of(led(member_id, subscription, assignment))
    assert found.implementation == implementation, why
    assert len(found.evidence) == 2


def _without_bytes(one: ClassicMember) -> ClassicMember:
    return replace(one, assignment=None)


@pytest.mark.parametrize(
    ("group", "why"),
    [
        (replace(led("a", (3, None), (3, None)), leader="somebody"), "the leader is not among the members"),
        (replace(led("a", (3, None), (3, None)), leader=None), "no leader"),
        (metadata(1, [_without_bytes(member("a"))]), "nobody was given anything"),
        (metadata(1, [replace(member("a"), subscription=None)]), "the leader's subscription is empty"),
        (
            metadata(1, [member("a"), replace(member("b"), assignment=Assignment(0, (), b""))]),
            "two shapes: one program writes all of them alike",
        ),
    ],
)
def test_without_whole_evidence_nobody_is_named(group: GroupMetadata, why: str) -> None:
    assert leader_of(group).implementation == UNKNOWN_LEADER, why
