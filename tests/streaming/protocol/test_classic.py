"""Tests of the typed view of a classic group's metadata, with values of every version and with the real sample."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.protocol import DecodedRecord, decode
from streaming.protocol.classic import (
    NOTHING_ASSIGNED,
    Assignment,
    ClassicMember,
    Refusal,
    Subscription,
    group_metadata,
)
from streaming.protocol.layouts import (
    CONSUMER_PROTOCOL_ASSIGNMENT,
    CONSUMER_PROTOCOL_SUBSCRIPTION,
    GROUP_METADATA,
)
from tests.bench.encoder import encode
from tests.streaming.protocol.records import sample_records

KEY = bytes.fromhex("0002 0001 67")
OWNED = [{"topic": "b", "partitions": [1, 0]}, {"topic": "a", "partitions": [2]}]


def _versioned(version: int, raw: bytes) -> bytes:
    return version.to_bytes(2, "big", signed=True) + raw


def _subscription(version: int, **changes: object) -> bytes:
    fields = {"topics": ["b", "a"], "userData": b"u", "ownedPartitions": OWNED, "generationId": 6, "rackId": "r1"}
    layout_version = max(0, min(version, 3))
    return _versioned(version, encode(CONSUMER_PROTOCOL_SUBSCRIPTION, layout_version, {**fields, **changes}))


def _assignment(version: int = 1) -> bytes:
    fields = {"assignedPartitions": OWNED, "userData": None}
    return _versioned(version, encode(CONSUMER_PROTOCOL_ASSIGNMENT, min(version, 3), fields))


def _member(**changes: object) -> dict[str, Any]:
    member = {
        "memberId": "m-1",
        "groupInstanceId": "i-1",
        "clientId": "c",
        "clientHost": "/127.0.0.1",
        "rebalanceTimeout": 300_000,
        "sessionTimeout": 45_000,
        "subscription": _subscription(3),
        "assignment": _assignment(),
    }
    return {**member, **changes}


def _record(version: int, *members: dict[str, Any], **changes: object) -> DecodedRecord:
    fields = {
        "protocolType": "consumer",
        "generation": 7,
        "protocol": "range",
        "leader": "m-1",
        "currentStateTimestamp": 1_700_000_000_000,
        "members": members,
    }
    return decode(KEY, _versioned(version, encode(GROUP_METADATA.value, version, {**fields, **changes})))


@pytest.mark.parametrize(
    ("version", "timestamp_ms", "rebalance_timeout_ms", "instance_id"),
    [
        (0, None, 45_000, None),  # no rebalance timeout: the coordinator uses the session timeout
        (1, None, 300_000, None),
        (2, 1_700_000_000_000, 300_000, None),
        (3, 1_700_000_000_000, 300_000, "i-1"),
        (4, 1_700_000_000_000, 300_000, "i-1"),
    ],
)
def test_each_version_gives_its_fields_and_none_for_the_others(
    version: int, timestamp_ms: int | None, rebalance_timeout_ms: int, instance_id: str | None
) -> None:
    group = group_metadata(_record(version, _member()))
    (member,) = group.members
    assert (group.group_id, group.protocol_type, group.generation_id) == ("g", "consumer", 7)
    assert (group.protocol, group.leader, group.value_version) == ("range", "m-1", version)
    assert group.current_state_timestamp_ms == timestamp_ms
    assert member == ClassicMember(
        member_id="m-1",
        group_instance_id=instance_id,
        client_id="c",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=rebalance_timeout_ms,
        session_timeout_ms=45_000,
        subscription=Subscription(3, ("b", "a"), b"u", (("b", 1), ("b", 0), ("a", 2)), 6, "r1"),
        assignment=Assignment(1, (("b", 1), ("b", 0), ("a", 2)), None),
    )


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (0, Subscription(0, ("b", "a"), b"u", (), -1, None)),  # topics and user data
        (1, Subscription(1, ("b", "a"), b"u", (("b", 1), ("b", 0), ("a", 2)), -1, None)),  # KIP-429: owned partitions
        (2, Subscription(2, ("b", "a"), b"u", (("b", 1), ("b", 0), ("a", 2)), 6, None)),  # KIP-792: their generation
        (3, Subscription(3, ("b", "a"), b"u", (("b", 1), ("b", 0), ("a", 2)), 6, "r1")),  # KIP-881: rack
        (9, Subscription(9, ("b", "a"), b"u", (("b", 1), ("b", 0), ("a", 2)), 6, "r1")),  # a future version, read as 3
    ],
)
def test_a_subscription_of_each_version(version: int, expected: Subscription) -> None:
    (member,) = group_metadata(_record(3, _member(subscription=_subscription(version)))).members
    assert member.subscription == expected


@pytest.mark.parametrize("rack", [None, ""])
def test_a_null_or_empty_rack_is_no_rack(rack: str | None) -> None:
    """``ConsumerProtocol.deserializeSubscription``. librdkafka writes an empty rack."""
    (member,) = group_metadata(_record(3, _member(subscription=_subscription(3, rackId=rack)))).members
    assert member.subscription is not None
    assert member.subscription.rack_id is None


def test_a_partition_that_a_member_gets_twice_is_one_partition() -> None:
    """Before, the partition had two owners with the same name, and the member's share had one partition too many."""
    twice = [{"topic": "t", "partitions": [0, 1, 0]}, {"topic": "t", "partitions": [1]}]
    fields = {"assignedPartitions": twice, "userData": None}
    raw = _versioned(1, encode(CONSUMER_PROTOCOL_ASSIGNMENT, 1, fields))
    (member,) = group_metadata(_record(3, _member(assignment=raw))).members
    assert member.assignment is not None
    assert member.assignment.partitions == (("t", 0), ("t", 1))


def test_an_empty_assignment_assigns_nothing_and_an_empty_subscription_is_unknown() -> None:
    """A leader may leave out a member without partitions. No client writes an empty subscription.

    Before, both were None. A topic that the group had left stayed in its lag, and real topics were unknown partitions.
    """
    refusals: list[Refusal] = []
    (member,) = group_metadata(_record(3, _member(subscription=b"", assignment=b"")), refusals).members
    assert (member.subscription, member.assignment) == (None, NOTHING_ASSIGNED)
    assert not refusals


@pytest.mark.parametrize("protocol_type", ["connect", "sr", ""])
def test_the_bytes_of_other_protocol_types_are_opaque(protocol_type: str) -> None:
    """Connect and Schema Registry have their own formats.

    These bytes are not decoded and are no reason for a refusal.
    """
    record = _record(3, _member(subscription=b"\xff\xff", assignment=b"\x00"), protocolType=protocol_type)
    (member,) = group_metadata(record).members
    assert (member.subscription, member.assignment) == (None, None)


def test_an_empty_group_has_no_protocol_no_leader_and_no_members() -> None:
    group = group_metadata(_record(3, protocol=None, leader=None, currentStateTimestamp=-1))
    assert (group.protocol, group.leader, group.current_state_timestamp_ms, group.members) == (None, None, None, ())


@pytest.mark.parametrize("version", [0, 1])
def test_an_assignment_that_is_cut_after_its_partitions_is_read_and_any_other_cut_is_refused(version: int) -> None:
    """The leaders of pykafka (version 1) and @platformatic/kafka (version 0) omit the user data.

    Before, every member of their groups was unknown, and unowned partitions were never reported.
    """
    fields = {"assignedPartitions": OWNED, "userData": b"user"}
    whole = _versioned(version, encode(CONSUMER_PROTOCOL_ASSIGNMENT, version, fields))
    ends_with_partitions = len(whole) - 8
    for length in range(1, len(whole)):
        refusals: list[Refusal] = []
        (member,) = group_metadata(_record(3, _member(assignment=whole[:length])), refusals).members
        is_readable = length == ends_with_partitions
        assert (member.assignment is not None, not refusals) == (is_readable, is_readable), length
        if is_readable:
            assert member.assignment == Assignment(None, (("b", 1), ("b", 0), ("a", 2)), None)


@pytest.mark.parametrize(
    ("changes", "reason", "field"),
    [
        ({"subscription": b"\x00"}, "truncated", "subscription.version"),
        ({"subscription": b"\xff\xfe"}, "unknown_embedded_version", "subscription.version"),
        ({"subscription": _subscription(3)[:-1]}, "truncated", "subscription.rackId"),
        ({"assignment": _assignment()[:9]}, "truncated", "assignment.assignedPartitions[0].partitions"),
        ({"assignment": bytes.fromhex("0000 7fffffff")}, "array_too_long", "assignment.assignedPartitions"),
    ],
)
def test_undecodable_bytes_of_a_member_affect_only_that_member_and_name_it(
    changes: dict[str, bytes], reason: str, field: str
) -> None:
    """Before, one undecodable member hid its whole group: no members, no verdict, state Unknown."""
    refusals: list[Refusal] = []
    group = group_metadata(_record(3, _member(), _member(memberId="m-2", **changes)), refusals)
    assert [(refusal.reason, refusal.field) for _, refusal in refusals] == [(reason, f"value.members[1].{field}")]
    ((place, raw),) = changes.items()
    assert [refused for refused, _ in refusals] == [raw]
    assert [member.member_id for member in group.members] == ["m-1", "m-2"]
    whole, broken = group.members
    assert getattr(broken, place) is None
    kept = "assignment" if place == "subscription" else "subscription"
    assert getattr(broken, kept) == getattr(whole, kept)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("user_data", [None, b"", b"rack-a"])
def test_a_subscription_that_ends_before_owned_partitions_is_read_as_version_0(
    version: int, user_data: bytes | None
) -> None:
    """kafka-go writes version 1 and Faust version 4, both with version 0 fields.

    Before, their groups were invisible.
    """
    raw = _versioned(version, encode(CONSUMER_PROTOCOL_SUBSCRIPTION, 0, {"topics": ["b", "a"], "userData": user_data}))
    refusals: list[Refusal] = []
    (member,) = group_metadata(_record(3, _member(subscription=raw)), refusals).members
    assert member.subscription == Subscription(version, ("b", "a"), user_data, (), -1, None, ends_before_owned=True)
    assert not refusals


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_subscription_that_is_cut_at_any_other_position_is_refused(version: int) -> None:
    """Only after the user data do libraries stop on purpose."""
    whole = _subscription(version, userData=b"u")
    ends_with_user_data = len(_subscription(0, userData=b"u"))
    for length in range(1, len(whole)):
        refusals: list[Refusal] = []
        (member,) = group_metadata(_record(3, _member(subscription=whole[:length])), refusals).members
        assert (member.subscription is None) == (length != ends_with_user_data)
        assert len(refusals) == (length != ends_with_user_data)


@pytest.mark.parametrize(
    ("key", "value"),
    [(KEY, None), (bytes.fromhex("0003 0001 67"), bytes.fromhex("0000 00000001 00"))],
    ids=["a tombstone", "another record type"],
)
def test_only_a_classic_groups_metadata_has_this_view(key: bytes, value: bytes | None) -> None:
    with pytest.raises(ValueError, match="not a GroupMetadata record"):
        group_metadata(decode(key, value))


def test_the_groups_of_the_real_sample_have_one_owner_per_partition() -> None:
    """Leaders of real groups assigned each partition to one member that subscribes to its topic."""
    decoded = [decode(key, value) for key, value in sample_records()]
    groups = [group_metadata(record) for record in decoded if record.name == "GroupMetadata" and record.value]
    assert len(groups) == 229
    for group in groups:
        owned = [pair for member in group.members if member.assignment for pair in member.assignment.partitions]
        assert len(owned) == len(set(owned))
        for member in group.members:
            if member.assignment and member.subscription:
                assert {topic for topic, _ in member.assignment.partitions} <= set(member.subscription.topics)
