"""Tests that the leader's library is recognised from records of real clients (Kafka 4.2, default settings)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streaming.evaluation.assignment.leader import (
    AIOKAFKA,
    FAUST,
    FRANZ_GO,
    JAVA,
    KAFKA_GO,
    KAFKA_PYTHON,
    KAFKAJS,
    LIBRDKAFKA,
    OLD_JAVA,
    OLD_SARAMA,
    SARAMA,
    UNKNOWN_LEADER,
    leader_of,
)
from streaming.protocol.classic import NOTHING_ASSIGNED, Assignment, ClassicMember, GroupMetadata, Subscription
from tests.streaming.groups import member, metadata

Shape = tuple[int, bytes | None]
"""Version and user data."""

CLAIM = bytes.fromhex("00000001 0001 74 00000001 00000003 00000007")
"""A `sticky` member's claim as Java, aiokafka, sarama and franz-go write it."""
KAFKA_PYTHON_CLAIM = b"\x00\x01" + CLAIM

Row = tuple[str, str, Shape, Shape, str, str]
"""Strategy, leader's member id, shapes of its subscription and of all assignments, expected library, and the reason."""

SHAPES: list[Row] = [
    ("range", "consumer-g-1-5f", (3, None), (3, None), JAVA, "Java 4.2"),
    ("sticky", "svc-5f", (3, CLAIM), (3, None), JAVA, "Java 4.2: the claim is in the user data"),
    ("range", "svc-5f", (1, None), (1, None), JAVA, "Java 2.4 to 3.1"),
    (
        "range",
        "svc-5f",
        (0, None),
        (0, None),
        UNKNOWN_LEADER,
        "old sarama, old franz-go and small libraries write the same bytes",
    ),
    ("range", "sarama-5f", (0, None), (0, None), SARAMA, "sarama before 1.60 with its default client id"),
    ("range", "rdkafka-5f", (3, b""), (0, b""), LIBRDKAFKA, "librdkafka 2.16"),
    ("cooperative-sticky", "svc-5f", (3, b"\0"), (0, b"\0"), LIBRDKAFKA, "librdkafka 2.16 with a custom client.id"),
    ("range", "svc-5f", (1, b""), (0, b""), LIBRDKAFKA, "librdkafka 2.0"),
    ("range", "rdkafka-5f", (0, b""), (0, b""), LIBRDKAFKA, "librdkafka before 1.6 with its default client id"),
    (
        "range",
        "svc-5f",
        (0, b""),
        (0, b""),
        UNKNOWN_LEADER,
        "kafka-python, aiokafka, old Java and librdkafka write the same bytes",
    ),
    ("range", "kafka-python-3.0.12-5f", (0, b""), (0, b""), KAFKA_PYTHON, "kafka-python's default client id"),
    ("range", "aiokafka-0.14.0-5f", (0, b""), (0, b""), AIOKAFKA, "before, aiokafka was named kafka-python"),
    ("range", "consumer-1-5f", (0, b""), (0, b""), UNKNOWN_LEADER, "before, Java 2.3 was named kafka-python"),
    (
        "sticky",
        "svc-5f",
        (0, KAFKA_PYTHON_CLAIM),
        (0, b""),
        KAFKA_PYTHON,
        "kafka-python 3.0: the claim has its own format",
    ),
    (
        "sticky",
        "svc-5f",
        (0, CLAIM),
        (0, b""),
        UNKNOWN_LEADER,
        "aiokafka, old kafka-python and old Java write the same bytes",
    ),
    ("sticky", "aiokafka-0.14.0-5f", (0, CLAIM), (0, b""), AIOKAFKA, "aiokafka"),
    ("cooperative-sticky", "svc-5f", (1, b""), (1, b""), KAFKA_PYTHON, "kafka-python 3.0"),
    ("RoundRobinAssigner", "svc-5f", (0, b""), (0, b""), KAFKAJS, "before, KafkaJS was named kafka-python"),
    ("range", "svc-5f", (2, None), (0, None), SARAMA, "sarama 1.60 for brokers since 3.2"),
    ("sticky", "svc-5f", (2, CLAIM), (0, CLAIM), SARAMA, "sarama puts the claim of the next round into the assignment"),
    ("cooperative-sticky", "svc-5f", (1, b"\0\0\0\2"), (0, None), SARAMA, "the claim is in the subscription itself"),
    ("range", "svc-5f", (3, None), (0, None), FRANZ_GO, "franz-go since 2023"),
    ("cooperative-sticky", "svc-5f", (3, CLAIM), (0, None), FRANZ_GO, "franz-go"),
    ("range", "svc-5f", (3, b""), (3, b""), UNKNOWN_LEADER, "an unknown shape"),
    ("range", "consumer-g-1-5f", (3, b""), (3, b""), UNKNOWN_LEADER, "a client id like Java's is no evidence"),
    (
        "range",
        "aiokafka-0.14.0-5f",
        (3, None),
        (3, None),
        JAVA,
        "a client id is no evidence if the bytes are those of a different library",
    ),
    ("range", "svc-5f", (3, None), (3, b""), UNKNOWN_LEADER, "half of Java's"),
]

ENDS_EARLY: list[Row] = [
    (
        "range",
        "svc-5f",
        (1, None),
        (1, None),
        KAFKA_GO,
        "without the missing field the bytes are identical to Java 2.4",
    ),
    ("rack-affinity", "svc-5f", (1, b"eu-1a"), (1, None), KAFKA_GO, "the rack is in the user data"),
    ("faust", "svc-5f", (4, b"{}"), (4, b"\x78\x9c"), FAUST, "JSON, and compressed JSON"),
]


def led(protocol: str, member_id: str, subscription: Shape, assignment: Shape, *, ends: bool = False) -> GroupMetadata:
    """Return a group of one library that this member leads. Each assignment has its own user data."""
    leaders_subscription = Subscription(
        subscription[0], ("orders",), subscription[1], (), -1, None, ends_before_owned=ends
    )
    leader = replace(
        member(member_id),
        subscription=leaders_subscription,
        assignment=Assignment(assignment[0], (("orders", 0),), assignment[1]),
    )
    follower = replace(
        member("z"), subscription=leaders_subscription, assignment=Assignment(assignment[0], (), assignment[1])
    )
    left_out = replace(member("zz"), subscription=leaders_subscription, assignment=NOTHING_ASSIGNED)
    return metadata(1, [leader, follower, left_out], protocol=protocol)


@pytest.mark.parametrize(("row", "ends"), [*((row, False) for row in SHAPES), *((row, True) for row in ENDS_EARLY)])
def test_the_leaders_library_is_recognised_from_what_it_wrote(row: Row, ends: bool) -> None:
    """Only the leader's records matter. Users can set any client.id."""
    protocol, member_id, subscription, assignment, implementation, why = row
    found = leader_of(led(protocol, member_id, subscription, assignment, ends=ends))
    assert found.implementation == implementation, why
    assert len(found.evidence) >= 2
    assert found.candidates[:1] == (implementation,) or implementation == UNKNOWN_LEADER
    assert found.candidates[1:] == ((OLD_SARAMA,) if implementation == SARAMA and subscription[0] == 0 else ()) or (
        implementation == UNKNOWN_LEADER
    )


def test_a_static_leader_is_known_by_its_client_id() -> None:
    """The id of a static member begins with its instance id."""
    group = led("range", "pod-0-5f", (0, b""), (0, b""))
    first, *others = group.members
    static = replace(first, group_instance_id="pod-0", client_id="aiokafka-0.14.0")
    assert leader_of(replace(group, members=(static, *others))).implementation == AIOKAFKA


def test_all_libraries_that_write_the_same_bytes_stay_candidates() -> None:
    """A promise that all candidates make can be evaluated."""
    found = leader_of(led("range", "svc-5f", (0, b""), (0, b"")))
    assert (found.implementation, found.candidates) == (
        UNKNOWN_LEADER,
        (AIOKAFKA, OLD_JAVA, KAFKA_PYTHON, LIBRDKAFKA),
    )


def test_without_a_leaders_id_there_are_candidates_only() -> None:
    """DescribeGroups returns no leader. All members wrote as Java does, so the leader was Java."""
    found = leader_of(replace(led("range", "svc-5f", (3, None), (3, None)), leader=None))
    assert (found.implementation, found.candidates) == (UNKNOWN_LEADER, (JAVA,))


def librdkafka_member() -> ClassicMember:
    """Return a member with the subscription of librdkafka before 1.6."""
    return replace(member("rdkafka-5f"), subscription=Subscription(0, ("orders",), b"", (), -1, None))


def _without_bytes(one: ClassicMember) -> ClassicMember:
    return replace(one, assignment=None)


@pytest.mark.parametrize(
    ("group", "why"),
    [
        (replace(led("range", "a", (3, None), (3, None)), leader="somebody"), "the leader is not among the members"),
        (replace(led("range", "a", (3, None), (3, None)), leader=None), "no leader"),
        (metadata(1, [_without_bytes(member("a"))]), "no member got an assignment"),
        (metadata(1, [replace(member("a"), subscription=None)]), "the leader's subscription is empty"),
        (
            metadata(1, [member("a"), replace(member("b"), assignment=Assignment(0, (), b""))]),
            "two shapes: one library writes all assignments alike",
        ),
        (
            metadata(1, [replace(librdkafka_member(), assignment=Assignment(None, (("orders", 0),), None))]),
            "the assignment ends before the user data: pykafka and @platformatic/kafka, and not librdkafka",
        ),
    ],
)
def test_no_library_is_named_without_complete_evidence(group: GroupMetadata, why: str) -> None:
    assert leader_of(group).implementation == UNKNOWN_LEADER, why
