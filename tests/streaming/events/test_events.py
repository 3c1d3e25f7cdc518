"""Tests of the conversion from records to events, and of the encoding of events."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.events import (
    CLASSIC,
    CONSUMER,
    SHARE,
    STREAMS,
    AssignorReported,
    CurrentWritten,
    DecodeFailed,
    EpochWritten,
    GroupEvent,
    GroupForgotten,
    GroupMetadataWritten,
    GroupTombstoned,
    GroupVanished,
    MemberWritten,
    ModernEvent,
    Position,
    RegexResolved,
    SkipSettled,
    TargetEpochWritten,
    TargetWritten,
    TopicMetadata,
    TopicsNamed,
    TopicsSampled,
    decode_event,
    encode_event,
)
from streaming.events.from_records import decode_failed_event, entry_name, log_event
from streaming.protocol import UndecodableRecord, decode, layouts
from streaming.protocol.modern import ClassicProtocols, MemberAssignment, ModernMember
from streaming.protocol.schema import RecordLayout
from tests.streaming.combine.strategies import ANY_RECORD, Bytes
from tests.streaming.groups import member, metadata
from tests.streaming.log_records import (
    commit_key,
    commit_value,
    group_key,
    group_value,
    member_fields,
    other_group_key,
    other_group_value,
    record_key,
    record_value,
)

POSITION = Position(3, 41, 1_700_000_000_000)
ID = "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.mark.parametrize("group_type", [CONSUMER, SHARE, STREAMS])
def test_an_epoch_is_an_event_of_every_newer_type_and_its_tombstone_is_the_groups_end(group_type: str) -> None:
    """KIP-848, KIP-932 and KIP-1071."""
    key = other_group_key(group_type, "g")
    alive = log_event(decode(key, other_group_value(group_type, 7)), POSITION)
    assert alive == ("g", EpochWritten(POSITION, group_type, 7))
    assert log_event(decode(key, None), POSITION) == ("g", GroupTombstoned(POSITION, group_type))


MEMBER_VALUE: Mapping[str, object] = {
    "instanceId": "i",
    "rackId": "",
    "clientId": "c",
    "clientHost": "/h",
    "subscribedTopicNames": ["a", "b"],
    "subscribedTopicRegex": "a.*",
    "rebalanceTimeoutMs": 45,
    "serverAssignor": "uniform",
    "classicMemberMetadata": {
        "sessionTimeoutMs": 9,
        "supportedProtocols": [{"name": "range", "metadata": b"\x00"}],
    },
}
"""The fields of every member record. The encoder uses those that the layout has."""
MEMBER = ModernMember("i", None, "c", "/h", ("a", "b"), "a.*", 45, "uniform", ClassicProtocols(9, ("range",)))
TOPIC_PARTITIONS = [{"topicId": ID, "partitions": [0, 2]}]
CURRENT_VALUE = {
    "memberEpoch": 4,
    "previousMemberEpoch": 3,
    "state": 1,
    "assignedPartitions": TOPIC_PARTITIONS,
    "partitionsPendingRevocation": [{"topicId": ID, "partitions": [7]}],
}
CURRENT = MemberAssignment(4, 3, "UnrevokedPartitions", ((ID, (0, 2)),), ((ID, (7,)),))
TASKS = dict.fromkeys(
    (kind + suffix for kind in ("activeTasks", "standbyTasks", "warmupTasks") for suffix in ("", "PendingRevocation")),
    (),
)
STREAMS_VALUE = {"topologyEpoch": 1, "processId": "p", "userEndpoint": None, "clientTags": ()}

ENTRIES: list[tuple[RecordLayout, Mapping[str, object], ModernEvent]] = [
    (layouts.CONSUMER_GROUP_MEMBER_METADATA, MEMBER_VALUE, MemberWritten(POSITION, CONSUMER, "m", MEMBER)),
    (
        layouts.SHARE_GROUP_MEMBER_METADATA,
        MEMBER_VALUE,
        MemberWritten(POSITION, SHARE, "m", ModernMember(None, None, "c", "/h", ("a", "b"), None, None, None, None)),
    ),
    (
        layouts.STREAMS_GROUP_MEMBER_METADATA,
        MEMBER_VALUE | STREAMS_VALUE,
        MemberWritten(POSITION, STREAMS, "m", ModernMember("i", None, "c", "/h", (), None, 45, None, None)),
    ),
    (
        layouts.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
        {"assignmentEpoch": 5},
        TargetEpochWritten(POSITION, CONSUMER, 5),
    ),
    (layouts.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA, {"assignmentEpoch": 5}, TargetEpochWritten(POSITION, SHARE, 5)),
    (
        layouts.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
        {"assignmentEpoch": 5},
        TargetEpochWritten(POSITION, STREAMS, 5),
    ),
    (
        layouts.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
        {"topicPartitions": TOPIC_PARTITIONS},
        TargetWritten(POSITION, CONSUMER, "m", ((ID, (0, 2)),)),
    ),
    (
        layouts.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
        {"topicPartitions": TOPIC_PARTITIONS},
        TargetWritten(POSITION, SHARE, "m", ((ID, (0, 2)),)),
    ),
    (layouts.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER, TASKS, TargetWritten(POSITION, STREAMS, "m", ())),
    (
        layouts.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        CURRENT_VALUE,
        CurrentWritten(POSITION, CONSUMER, "m", CURRENT),
    ),
    (
        layouts.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        CURRENT_VALUE | {"state": 99},
        CurrentWritten(POSITION, SHARE, "m", MemberAssignment(4, 3, "Unknown", ((ID, (0, 2)),), ())),
    ),
    (
        layouts.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        CURRENT_VALUE | TASKS,
        # The states of this layout count from 1, so the number of UnrevokedPartitions is Stable here.
        CurrentWritten(POSITION, STREAMS, "m", MemberAssignment(4, 3, "Stable", (), ())),
    ),
    (
        layouts.CONSUMER_GROUP_REGULAR_EXPRESSION,
        {"topics": ["a1", "a2"], "version": 1, "timestamp": 2},
        RegexResolved(POSITION, "a.*", ("a1", "a2")),
    ),
]


@pytest.mark.parametrize(("layout", "value", "event"), ENTRIES, ids=[layout.name for layout, *_ in ENTRIES])
def test_every_entry_of_a_group_gives_an_event_and_its_tombstone_gives_the_same_event_without_the_entry(
    layout: RecordLayout, value: Mapping[str, object], event: ModernEvent
) -> None:
    """`GroupMetadataManager.replay` has one method per record type. Each method adds or removes one entry."""
    key = record_key(layout, groupId="g", memberId="m", regularExpression="a.*")
    assert log_event(decode(key, record_value(layout, 0, **value)), POSITION) == ("g", event)
    last_field = event.__struct_fields__[-1]
    taken_away = msgspec.structs.replace(event, **{last_field: None})
    assert log_event(decode(key, None), POSITION) == ("g", taken_away)


def test_topic_names_come_from_records_of_older_coordinators() -> None:
    """Key type 4 was written up to Kafka 4.0. Later records have only topic ids."""
    layout = layouts.CONSUMER_GROUP_PARTITION_METADATA
    topic = {"topicId": ID, "topicName": "orders", "numPartitions": 3, "partitionMetadata": ()}
    value = record_value(layout, 0, topics=[topic])
    key = record_key(layout, groupId="g")
    assert log_event(decode(key, value), POSITION) == ("g", TopicsNamed(POSITION, {ID: "orders"}))
    assert log_event(decode(key, None), POSITION) == ("g", TopicsNamed(POSITION, None))


def test_a_classic_group_is_written_and_tombstoned() -> None:
    value = group_value(7, [member_fields("m", held={"orders": [0, 1]})])
    event = log_event(decode(group_key("g"), value), POSITION)
    assert event is not None
    group_id, happened = event
    assert group_id == "g"
    assert isinstance(happened, GroupMetadataWritten)
    assert happened.position == POSITION
    assert happened.metadata.generation_id == 7
    assert happened.metadata.members[0].assignment is not None
    assert happened.metadata.members[0].assignment.partitions == (("orders", 0), ("orders", 1))
    assert log_event(decode(group_key("g"), None), POSITION) == ("g", GroupTombstoned(POSITION))


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        (commit_key("g"), commit_value(1), "a commit contains no members"),
        (commit_key("g"), None, "a commit tombstone is not the end of a group: a group with assign() has no metadata"),
    ],
)
def test_records_without_membership_are_no_events(key: bytes, value: bytes | None, why: str) -> None:
    assert log_event(decode(key, value), POSITION) is None, why


def test_a_member_written_twice_is_one_member_with_the_last_entry() -> None:
    """ClassicGroup.add puts members into a map by id. Before, two members with one id stopped the query."""
    twice = [member_fields("m", held={"orders": [0]}), member_fields("n"), member_fields("m", held={"orders": [1]})]
    event = log_event(decode(group_key("g"), group_value(1, twice)), POSITION)
    assert event is not None
    assert isinstance(event[1], GroupMetadataWritten)
    held = {one.member_id: one.assignment and one.assignment.partitions for one in event[1].metadata.members}
    assert held == {"m": (("orders", 1),), "n": ()}
    assert len(event[1].metadata.members) == 2


@given(ANY_RECORD)
def test_every_record_gives_an_event_or_none_or_is_refused_and_every_event_can_be_encoded(record: Bytes) -> None:
    """The input is hostile: decoding must only raise UndecodableRecord."""
    try:
        grouped = log_event(decode(*record), POSITION)
    except UndecodableRecord:
        return
    if grouped is not None:
        assert decode_event(encode_event(grouped[1])) == grouped[1]


@pytest.mark.parametrize(
    "event",
    [
        GroupMetadataWritten(POSITION, metadata(3, [member("m", {"orders": [1]}, user_data=b"\x00\xff")])),
        GroupTombstoned(POSITION),
        EpochWritten(POSITION, "share", 2**31 - 1),
        GroupVanished(5, 7),
        DecodeFailed(POSITION, CONSUMER, "member", "m"),
        *(event for *_, event in ENTRIES),
        TopicsSampled({"t": TopicMetadata(3, 5, (("a", None), ("b",))), "absent": TopicMetadata(None, 5)}),
        SkipSettled(2**63 - 1, log_was_whole=True),
        GroupForgotten(),
        AssignorReported(3, "uniform"),
    ],
)
def test_every_kind_of_event_survives_its_encoding(event: GroupEvent) -> None:
    assert decode_event(encode_event(event)) == event


@given(st.binary(max_size=30))
def test_bytes_without_an_event_are_refused_with_one_exception(garbage: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_event(garbage)


@pytest.mark.parametrize(
    ("key", "event", "why"),
    [
        (group_key("g"), ("g", DecodeFailed(POSITION, CLASSIC, "group", "")), "a classic group"),
        *(
            (
                record_key(layout, groupId="g", memberId="m", regularExpression="a.*"),
                ("g", DecodeFailed(POSITION, event.group_type, *entry_name(event))),
                layout.name,
            )
            for layout, _, event in ENTRIES
            if not isinstance(event, RegexResolved)
        ),
        (commit_key("g"), None, "a commit contains no membership"),
        (b"\x00\x63", None, "an unknown type"),
        (b"\x00\x02\x00\x09g", None, "a truncated key"),
    ],
)
def test_a_quarantined_record_is_an_event_of_the_group_in_its_key(
    key: bytes, event: tuple[str, GroupEvent] | None, why: str
) -> None:
    assert decode_failed_event(key, POSITION) == event, why
