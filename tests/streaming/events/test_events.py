"""Records to events, and events across process borders."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.events import (
    GroupEvent,
    GroupForgotten,
    GroupMetadataWritten,
    GroupSeen,
    GroupTombstoned,
    Position,
    SkipSettled,
    TopicMetadata,
    TopicsSampled,
    decode_event,
    encode_event,
    log_event,
)
from streaming.protocol import UndecodableRecord, decode
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
)

POSITION = Position(3, 41, 1_700_000_000_000)


@pytest.mark.parametrize("group_type", ["consumer", "share", "streams"])
def test_groups_of_newer_types_are_seen_with_their_epoch_and_die_by_their_tombstone(group_type: str) -> None:
    """KIP-848, KIP-932 and KIP-1071 groups: recognised, not evaluated yet."""
    key = other_group_key(group_type, "g")
    alive = log_event(decode(key, other_group_value(group_type, 7)), POSITION)
    assert alive == ("g", GroupSeen(POSITION, group_type, 7))
    assert log_event(decode(key, None), POSITION) == ("g", GroupTombstoned(POSITION))


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
        (commit_key("g"), commit_value(1), "a commit says nothing of members"),
        (commit_key("g"), None, "nor does its tombstone: a group with assign() only has no metadata to die of"),
    ],
)
def test_records_without_membership_are_no_events(key: bytes, value: bytes | None, why: str) -> None:
    assert log_event(decode(key, value), POSITION) is None, why


def test_a_member_written_twice_is_one_member_and_the_last_entry_wins() -> None:
    """ClassicGroup.add puts members into a map by id. Two of one id once stopped the query: no group was judged."""
    twice = [member_fields("m", held={"orders": [0]}), member_fields("n"), member_fields("m", held={"orders": [1]})]
    event = log_event(decode(group_key("g"), group_value(1, twice)), POSITION)
    assert event is not None
    assert isinstance(event[1], GroupMetadataWritten)
    held = {one.member_id: one.assignment and one.assignment.partitions for one in event[1].metadata.members}
    assert held == {"m": (("orders", 1),), "n": ()}
    assert len(event[1].metadata.members) == 2


@given(ANY_RECORD)
def test_any_record_is_an_event_or_none_or_refused_and_every_event_crosses_process_borders(record: Bytes) -> None:
    """Law: input is hostile. Nothing but UndecodableRecord may come out of reading it."""
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
        GroupSeen(POSITION, "share", 2**31 - 1),
        TopicsSampled({"t": TopicMetadata(3, 5, (("a", None), ("b",))), "absent": TopicMetadata(None, 5)}),
        SkipSettled(2**63 - 1, log_was_whole=True),
        GroupForgotten(),
    ],
)
def test_every_kind_of_event_survives_its_encoding(event: GroupEvent) -> None:
    assert decode_event(encode_event(event)) == event


@given(st.binary(max_size=30))
def test_bytes_that_are_no_event_are_refused_by_one_exception(garbage: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_event(garbage)
