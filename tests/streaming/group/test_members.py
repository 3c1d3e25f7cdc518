"""Tests of members in one form for all protocols."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from streaming.events import STREAMS, TopicMetadata, TopicsSampled
from streaming.group.members import GroupMember, members, partitions_with_hidden_owner
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.layouts import STICKY_USER_DATA
from streaming.protocol.modern import ClassicProtocols, MemberAssignment
from tests.bench.encoder import encode
from tests.streaming.groups import (
    advanced,
    current,
    epoch,
    formed,
    joined,
    member,
    metadata,
    modern_member,
    target,
    target_epoch,
    tombstoned,
    written,
)

NAMED = TopicsSampled({"orders": TopicMetadata(4, 99_000, topic_id="id")})


def test_the_assignment_of_a_classic_member_is_also_its_target() -> None:
    classic = member("m", {"orders": [1, 0]}, ["sales", "orders"], instance_id="i", owned=[("orders", 3)])
    assert members(advanced([written(0, 1, [classic])])) == (
        GroupMember(
            member_id="m",
            group_instance_id="i",
            client_id="client-m",
            client_host="/127.0.0.1",
            rack_id=None,
            subscribed_topics=("orders", "sales"),
            subscribed_regex=None,
            member_epoch=None,
            owned=(("orders", 3),),
            assigned=(("orders", 0), ("orders", 1)),
            target=(("orders", 0), ("orders", 1)),
            pending_revocation=(),
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
        ),
    )


def test_a_sticky_member_claims_the_partitions_in_its_user_data() -> None:
    """KIP-54. Before, the table and the API showed that it had claimed nothing."""
    claim = encode(
        STICKY_USER_DATA, 1, {"previousAssignment": [{"topic": "orders", "partitions": [2, 1]}], "generation": 7}
    )
    known = metadata(1, [member("m", user_data=claim)], protocol="sticky")
    (one,) = members(GroupSnapshot("g", classic=known))
    assert one.owned == (("orders", 1), ("orders", 2))


def test_a_kip_848_member_has_assigned_target_and_revoked_partitions() -> None:
    """During the change, partition 0 stays, 1 is revoked and 2 is added."""
    on_its_way = MemberAssignment(3, 2, "UnrevokedPartitions", (("id", (0,)),), (("id", (1,)),))
    moving = current(7, number=3)
    assert hasattr(moving, "current")
    events = [*formed(0), target(6, held=(("id", (2, 0)),)), type(moving)(moving.position, "consumer", "m", on_its_way)]
    (one,) = members(advanced([*events, NAMED]))
    assert (one.assigned, one.pending_revocation) == ((("orders", 0),), (("orders", 1),))
    assert one.target == (("orders", 0), ("orders", 2))
    assert (one.member_epoch, one.owned) == (3, None)
    assert one.held == (("orders", 0), ("orders", 1)), "the member owns a partition until it has revoked the partition"


def test_the_owner_of_a_target_partition_is_hidden_only_if_pending_revocations_are_unknown() -> None:
    """Polling mode: the response shows neither who must revoke orders-1 nor whether somebody must."""
    (known,) = members(advanced([*formed(0), NAMED]))
    moving = msgspec.structs.replace(known, assigned=(("orders", 0),))
    assert partitions_with_hidden_owner([moving]) == frozenset(), "the records show that nobody must revoke orders-1"
    polled = msgspec.structs.replace(moving, pending_revocation=None)
    assert partitions_with_hidden_owner([polled]) == {("orders", 1)}
    other = msgspec.structs.replace(polled, assigned=(("orders", 1),), target=(("orders", 0),))
    assert partitions_with_hidden_owner([polled, other]) == frozenset(), "each target partition has an owner"


def test_a_field_without_a_record_is_none_and_not_empty() -> None:
    """Rule 2: a member that just joined has unknown partitions, not zero."""
    (one,) = members(advanced([joined(0), epoch(1)]))
    assert (one.assigned, one.target, one.member_epoch) == (None, None, None)
    (idle,) = members(advanced([joined(0), epoch(1), target(2, held=()), current(3, held=())]))
    assert (idle.assigned, idle.target) == ((), ())


def test_members_have_the_timeouts_of_their_protocol() -> None:
    """KIP-848: the group's configuration sets the session timeout, except for members of the classic protocol."""
    upgraded = replace(modern_member(), classic=ClassicProtocols(45_000, ("range",)))
    events = [joined(0, "new", modern_member()), joined(1, "old", upgraded), epoch(2)]
    timeouts = {one.member_id: one.session_timeout_ms for one in members(advanced(events))}
    assert timeouts == {"new": None, "old": 45_000}
    assert {one.rebalance_timeout_ms for one in members(advanced(events))} == {modern_member().rebalance_timeout_ms}
    assert modern_member().rebalance_timeout_ms is not None


def test_a_topic_without_a_name_is_shown_by_its_id() -> None:
    (one,) = members(advanced(formed(0)))
    assert one.assigned == (("id", 0), ("id", 1))


def test_the_topics_and_partitions_of_a_streams_member_are_unknown_and_not_empty() -> None:
    """KIP-1071: the records contain tasks. Before, each member had 0 partitions, so lag had the cause `no_owner`."""
    joins = [joined(0, member=modern_member(()), group_type=STREAMS), epoch(1, 3, STREAMS)]
    assigned = [target(2, "m", (), STREAMS), target_epoch(3, 3, STREAMS), current(4, "m", (), group_type=STREAMS)]
    for (one,) in (members(advanced(joins)), members(advanced([*joins, *assigned]))):
        assert (one.subscribed_topics, one.assigned, one.target, one.pending_revocation) == (None, None, None, None)
    assert one.member_epoch == 3


@pytest.mark.parametrize("snapshot", [GroupSnapshot("g"), advanced([written(0, 1), tombstoned(1)])])
def test_a_deleted_or_empty_group_has_no_members(snapshot: GroupSnapshot) -> None:
    assert members(snapshot) == ()


def test_members_are_sorted_by_id() -> None:
    both = [joined(0, "z", modern_member(["a"])), joined(1, "b"), epoch(2)]
    assert [one.member_id for one in members(advanced(both))] == ["b", "z"]
    classic = written(0, 1, [member("z"), member("b")])
    assert [one.member_id for one in members(advanced([classic]))] == ["b", "z"]
