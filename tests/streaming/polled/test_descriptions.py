"""Tests of the conversion of a coordinator's description to an event."""

from __future__ import annotations

from streaming.events import POLLED_PARTITION, Position
from streaming.group.advance import advance
from streaming.group.listing import DescribedGroup, DescribedMember, HeldTask
from streaming.group.members import members
from streaming.group.not_known import not_known, unknown_inputs
from streaming.group.snapshot import GroupSnapshot
from streaming.polled.descriptions import described_event
from tests.streaming.polled.answers import answered, assignment, classic, classic_member, modern, modern_member


def seen(group: DescribedGroup) -> GroupSnapshot:
    """Return the snapshot after the answer."""
    return advance(GroupSnapshot("g"), answered(1, group))


def test_a_classic_members_bytes_are_decoded_and_fields_without_an_answer_are_none():
    """Rule 2: an answer contains no leader, generation or timeouts."""
    snapshot = seen(classic(classic_member("b", [2]), classic_member("a", [0, 1], instance_id="i")))
    first, second = members(snapshot)
    assert (first.member_id, first.group_instance_id, first.assigned) == ("a", "i", (("t", 0), ("t", 1)))
    assert (second.subscribed_topics, second.assigned) == (("t",), (("t", 2),))
    assert snapshot.classic is not None
    assert (snapshot.classic.generation_id, snapshot.classic.leader) == (None, None)
    assert {member.session_timeout_ms for member in snapshot.classic.members} == {None}


def test_undecodable_bytes_are_quarantined_and_the_other_members_are_known():
    """Rule 4: one hostile member must not hide a group."""
    hostile = DescribedMember("x", "c", "/h", subscription=b"\x00", assignment=assignment([1]))
    event, refusals = described_event("g", classic(hostile, classic_member("a", [0])), Position(POLLED_PARTITION, 1, 0))
    assert [(raw, refusal.reason) for raw, refusal in refusals] == [(b"\x00", "truncated")]
    assert event.classic is not None
    assert [member.subscription is None for member in event.classic.members] == [False, True]


def test_bytes_of_other_protocol_types_are_not_decoded():
    """Kafka Connect has its own format. A decoder for consumers would return partitions that do not exist."""
    group = DescribedGroup("classic", "Stable", "connect", "sessioned", (classic_member("a", [0]),))
    assert [member.assigned for member in members(seen(group))] == [None]


def test_a_kip_848_member_is_stable_if_it_has_its_target_and_its_epoch():
    """`ConsumerGroupMember.isReconciledTo`, with the fields of ConsumerGroupDescribe."""
    snapshot = seen(
        modern(
            3,
            modern_member("a", [0], epoch=3, target=[0]),
            modern_member("b", [1], epoch=2, target=[1]),
            modern_member("c", [], epoch=3, target=[2]),
            state="Reconciling",
        )
    )
    assert snapshot.modern is not None
    states = {member_id: current.state for member_id, current in snapshot.modern.currents.items()}
    assert states == {"a": "Stable", "b": "Unknown", "c": "Unknown"}
    assert [(member.assigned, member.target, member.pending_revocation) for member in members(snapshot)] == [
        ((("t", 0),), (("t", 0),), None),
        ((("t", 1),), (("t", 1),), None),
        ((), (("t", 2),), None),
    ]
    assert not_known(snapshot) == ("pending_revocation",)


def test_a_regular_expression_is_known_and_its_topics_are_marked_unknown():
    """KIP-848: the coordinator resolves the expression, but its description does not contain the topics."""
    member = DescribedMember(
        "a", "c", "/h", member_epoch=3, subscribed_topics=(), subscribed_regex="t.*", held=(), target=()
    )
    snapshot = seen(modern(3, member))
    assert not_known(snapshot) == ("resolved_regex", "pending_revocation")
    assert unknown_inputs(snapshot) == ("resolved_regex",)
    assert [one.subscribed_topics for one in members(snapshot)] == [None], "unknown, not empty, although it is idle"


def test_a_streams_group_has_members_and_the_state_from_its_coordinator():
    """KIP-1071: the log does not contain its state. The coordinator returns it."""
    member = DescribedMember("a", "c", "/h", member_epoch=2, active_tasks=(HeldTask("0", (1,)),))
    snapshot = seen(DescribedGroup("streams", "Stable", "streams", None, (member,), 2, 2))
    assert (snapshot.state, snapshot.member_count(), snapshot.generation_id) == ("Stable", 1, 2)
    assert [(one.subscribed_topics, one.assigned, one.target) for one in members(snapshot)] == [(None, None, None)]
