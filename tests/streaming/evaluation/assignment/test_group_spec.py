"""Tests that the leader's inputs are rebuilt: the fields of each member, and the topics with known partition counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assignors import MemberSubscription
from streaming.evaluation.assignment.assignment_inputs import actual_owners, group_spec
from streaming.events import TopicMetadata, TopicsSampled
from streaming.protocol.classic import Assignment, ClassicMember
from streaming.protocol.layouts import STICKY_USER_DATA
from tests.bench.encoder import encode
from tests.streaming.groups import advanced, member, metadata, sampled, written

PREVIOUS = [{"topic": "orders", "partitions": [1, 2]}]
STICKY_V0 = encode(STICKY_USER_DATA, 0, {"previousAssignment": PREVIOUS})
STICKY_V1 = encode(STICKY_USER_DATA, 1, {"previousAssignment": PREVIOUS, "generation": 7})
CLAIMED = (("orders", 1), ("orders", 2))
GENERATION_7 = bytes.fromhex("00000007")


def in_version(version: int, joined: ClassicMember) -> ClassicMember:
    """Return the member with a different version of the subscription."""
    assert joined.subscription is not None
    return replace(joined, subscription=replace(joined.subscription, version=version))


def led_by_librdkafka(joined: ClassicMember) -> ClassicMember:
    """Return the member with an assignment of librdkafka, which contains the member's own user data."""
    assert joined.subscription is not None
    return replace(joined, assignment=Assignment(0, (), joined.subscription.user_data))


def with_generation(joined: ClassicMember) -> ClassicMember:
    """Return the member with `generationId` 5 in its subscription."""
    assert joined.subscription is not None
    return replace(joined, subscription=replace(joined.subscription, generation_id=5))


@pytest.mark.parametrize(
    ("leader_version", "rival_generation", "why"),
    [
        (1, None, "Java 2.8.1 to 3.3 compares the generations of the user data"),
        (3, -1, "Java 3.4 compares the first of two claims by `generationId`, and version 1 has no such field"),
    ],
)
@pytest.mark.parametrize(
    ("strategy", "owned", "user_data"),
    [("sticky", (), STICKY_V1), ("cooperative-sticky", CLAIMED, GENERATION_7)],
)
def test_a_claim_of_subscription_version_1_has_the_generation_of_its_user_data(  # noqa: PLR0913, PLR0917 - a table
    strategy: str,
    owned: tuple[tuple[str, int], ...],
    user_data: bytes,
    leader_version: int,
    rival_generation: int | None,
    why: str,
) -> None:
    """KIP-792. Before, the generation of a cooperative member was ignored, so an old claim counted as much as a new."""
    leader = in_version(leader_version, member("l"))
    joined = in_version(1, member("m", owned=owned, user_data=user_data))
    known = metadata(1, [leader, joined], protocol=strategy)
    expected = MemberSubscription(
        "m", ("orders",), owned=CLAIMED, generation_id=7, subscription_generation=rival_generation
    )
    assert group_spec(advanced([written(0, 1, known.members)]), known).members[1] == expected, why


@pytest.mark.parametrize(
    ("strategy", "joined", "subscription", "why"),
    [
        ("range", member("m"), MemberSubscription("m", ("orders",)), "a plain member"),
        (
            "range",
            member("m", instance_id="i", rack_id="r"),
            MemberSubscription("m", ("orders",), "i", "r"),
            "a static member with a rack",
        ),
        (
            "cooperative-sticky",
            member("m", owned=[("orders", 0)]),
            MemberSubscription("m", ("orders",), owned=(("orders", 0),)),
            "KIP-429: owned partitions in the subscription",
        ),
        (
            "sticky",
            member("m", user_data=STICKY_V1),
            MemberSubscription("m", ("orders",), owned=CLAIMED, generation_id=7, subscription_generation=-1),
            "KIP-54: sticky claims in the user data, with their own generation",
        ),
        (
            "sticky",
            member("m", user_data=STICKY_V0),
            MemberSubscription("m", ("orders",), owned=CLAIMED, user_data_version=0),
            "version 0 of the user data has no generation",
        ),
        (
            "cooperative-sticky",
            led_by_librdkafka(member("m", owned=[("orders", 0)], user_data=STICKY_V1)),
            MemberSubscription("m", ("orders",), owned=(("orders", 0),), generation_id=7, subscription_generation=-1),
            "librdkafka before 2.2: the claim is in the subscription, and its generation in the user data",
        ),
        (
            "cooperative-sticky",
            led_by_librdkafka(member("m", user_data=STICKY_V1)),
            MemberSubscription("m", ("orders",), generation_id=7, subscription_generation=-1),
            "cooperative-sticky: the partitions in the user data are not a claim",
        ),
        (
            "sticky",
            member("m", user_data=b"my own"),
            MemberSubscription("m", ("orders",)),
            "user data of a different assignor claims nothing",
        ),
        (
            "my-sticky",
            member("m", user_data=STICKY_V1),
            MemberSubscription("m", ("orders",), owned=CLAIMED, generation_id=7, subscription_generation=-1),
            "a user's own class that extends StickyAssignor. Before, its replay got no claims: a false `drift`",
        ),
        (
            "my-own",
            with_generation(member("m", user_data=b"my own")),
            MemberSubscription("m", ("orders",), generation_id=5),
            "user data of an own strategy in a different format does not hide `generationId`",
        ),
        (
            "my-own",
            with_generation(member("m", owned=[("orders", 0)], user_data=STICKY_V1)),
            MemberSubscription("m", ("orders",), owned=(("orders", 0),), generation_id=5),
            "`ownedPartitions` of an own strategy have priority",
        ),
        (
            "range",
            member("m", user_data=STICKY_V1),
            MemberSubscription("m", ("orders",)),
            "range never reads claims",
        ),
    ],
)
def test_a_member_is_rebuilt_from_its_subscription(
    strategy: str, joined: ClassicMember, subscription: MemberSubscription, why: str
) -> None:
    known = metadata(1, [joined], protocol=strategy)
    assert group_spec(advanced([written(0, 1, [joined])]), known).members == (subscription,), why


@pytest.mark.parametrize(
    ("user_data", "generation_id", "why"),
    [
        (GENERATION_7, 7, "Java 2.8.1 to 3.3 writes only the generation"),
        (STICKY_V1, 1, "librdkafka before 2.2: the first four bytes are the number of topics"),
        (b"\x07", -1, "too short for a generation"),
    ],
)
def test_a_java_leader_reads_the_first_four_bytes_of_cooperative_user_data_as_the_generation(
    user_data: bytes, generation_id: int, why: str
) -> None:
    """`CooperativeStickyAssignor.memberData`. Before, the replay read the generation from the format of `sticky`."""
    leader = member("java", {"orders": [0]}, user_data=GENERATION_7)
    joined = member("m", {"orders": [1]}, owned=[("orders", 1)], user_data=user_data)
    known = metadata(1, [leader, joined], protocol="cooperative-sticky")
    spec = group_spec(advanced([written(0, 1, known.members)]), known)
    assert (spec.members[1].owned, spec.members[1].generation_id) == ((("orders", 1),), generation_id), why


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
