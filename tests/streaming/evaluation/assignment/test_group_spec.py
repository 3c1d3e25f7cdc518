"""Tests that the leader's inputs are rebuilt: the fields of each member, and the topics with known partition counts."""

from __future__ import annotations

import pytest

from assignors import MemberSubscription
from streaming.evaluation.assignment.assignment_inputs import actual_owners, group_spec
from streaming.events import TopicMetadata, TopicsSampled
from streaming.protocol.classic import ClassicMember
from streaming.protocol.layouts import STICKY_USER_DATA
from tests.bench.encoder import encode
from tests.streaming.groups import advanced, member, metadata, sampled, written

PREVIOUS = [{"topic": "orders", "partitions": [1, 2]}]
STICKY_V0 = encode(STICKY_USER_DATA, 0, {"previousAssignment": PREVIOUS})
STICKY_V1 = encode(STICKY_USER_DATA, 1, {"previousAssignment": PREVIOUS, "generation": 7})
CLAIMED = (("orders", 1), ("orders", 2))


@pytest.mark.parametrize(
    ("joined", "subscription", "why"),
    [
        (member("m"), MemberSubscription("m", ("orders",)), "a plain member"),
        (
            member("m", instance_id="i", rack_id="r"),
            MemberSubscription("m", ("orders",), "i", "r"),
            "a static member with a rack",
        ),
        (
            member("m", owned=[("orders", 0)]),
            MemberSubscription("m", ("orders",), owned=(("orders", 0),)),
            "KIP-429: owned partitions in the subscription",
        ),
        (
            member("m", user_data=STICKY_V1),
            MemberSubscription("m", ("orders",), owned=CLAIMED, generation_id=7, subscription_generation=-1),
            "KIP-54: sticky claims in the user data, with their own generation",
        ),
        (
            member("m", user_data=STICKY_V0),
            MemberSubscription("m", ("orders",), owned=CLAIMED, user_data_version=0),
            "version 0 of the user data has no generation",
        ),
        (
            member("m", owned=[("orders", 0)], user_data=STICKY_V1),
            MemberSubscription("m", ("orders",), owned=(("orders", 0),)),
            "cooperative-sticky: the claim in the subscription takes precedence",
        ),
        (
            member("m", user_data=b"my own"),
            MemberSubscription("m", ("orders",), subscription_generation=-1),
            "user data of a different assignor claims nothing",
        ),
    ],
)
def test_a_member_is_rebuilt_from_its_subscription(
    joined: ClassicMember, subscription: MemberSubscription, why: str
) -> None:
    known = metadata(1, [joined])
    assert group_spec(advanced([written(0, 1, [joined])]), known).members == (subscription,), why


def test_a_member_without_a_subscription_has_no_topics() -> None:
    """Empty subscription bytes are valid: the member joined without one."""
    bare = ClassicMember("m", "i", "c", "/h", 1, 1, None, None)
    spec = group_spec(advanced([written(0, 1, [bare])]), metadata(1, [bare]))
    assert spec.members == (MemberSubscription("m", (), instance_id="i"),)
    assert actual_owners(metadata(1, [bare])) == {}


def test_topics_that_do_not_exist_have_no_metadata() -> None:
    snapshot = advanced([written(0, 1, [member("m", topics=["a", "b"])]), sampled(5, a=None, b=2)])
    assert snapshot.classic is not None
    assert group_spec(snapshot, snapshot.classic).partitions == {"b": 2}


def test_racks_are_passed_if_they_were_sampled() -> None:
    racks = (("r1",), ("r2", None))
    samples = TopicsSampled({"orders": TopicMetadata(2, 5, racks)})
    snapshot = advanced([written(0, 1), samples])
    assert snapshot.classic is not None
    assert group_spec(snapshot, snapshot.classic).racks == {"orders": racks}


def test_owners_are_those_in_the_record_sorted_and_several_if_the_record_has_several() -> None:
    members = [member("b", {"orders": [0, 1]}), member("a", {"orders": [1], "sales": [0]})]
    assert actual_owners(metadata(1, members)) == {
        ("orders", 0): ("b",),
        ("orders", 1): ("a", "b"),
        ("sales", 0): ("a",),
    }
