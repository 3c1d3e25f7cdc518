"""Tests for the rules of `streaming.evaluation.assignment.common_rules`: each situation, its result, and the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import process_time

import pytest

from assignors import AS_JAVA_LEADER
from streaming.evaluation.assignment.common_rules import RuleViolations, with_unowned
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.events import DecodeFailed, GroupEvent, GroupMetadataWritten, TopicMetadata, TopicsSampled
from streaming.group.advance import advance
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import ClassicMember
from tests.streaming.groups import (
    at,
    current,
    emptied,
    epoch,
    formed,
    joined,
    member,
    metadata,
    modern_member,
    sampled,
    target,
    target_epoch,
    tombstoned,
)

ORDERS = "orders"


def generation(
    offsets_topic_offset: int, *members: ClassicMember, protocol: str = "range", kind: str = "consumer"
) -> GroupEvent:
    """Return a generation. Its time in milliseconds is 1,000 times its offset."""
    return GroupMetadataWritten(
        at(offsets_topic_offset), metadata(offsets_topic_offset, members, protocol=protocol, protocol_type=kind)
    )


def has(*held: int, owned: Sequence[int] = (), topics: Sequence[str] = (ORDERS,), name: str = "a") -> ClassicMember:
    """Return a member that subscribes to `orders`."""
    return member(name, {ORDERS: held}, topics, owned=[(ORDERS, number) for number in owned])


def sampled_with_id(sampled_at_ms: int, count: int | None) -> TopicsSampled:
    """Return a sample of `orders` with the topic id that KIP-848 records contain."""
    return TopicsSampled({ORDERS: TopicMetadata(count, sampled_at_ms, topic_id="id")})


def violations(*batches: Sequence[GroupEvent]) -> RuleViolations | None:
    """Return the violations after the batches. One batch with all events must give the same result."""
    record = GroupState(GroupSnapshot("g"))
    for batch in batches:
        record = apply_batch(record, batch, [AS_JAVA_LEADER["range"]]).record
    return record.violations


def unowned(*batches: Sequence[GroupEvent]) -> list[tuple[int, int]]:
    """Return the unowned partitions of `orders`, each with its start time."""
    found = violations(*batches)
    assert found is not None
    assert found.is_known
    return [(one.partition, one.since_ms) for one in found.unowned if not one.is_pending]


@pytest.mark.parametrize(
    ("batches", "found", "why"),
    [
        ([[generation(10, has(0, 1, 2))], [sampled(11_000, orders=3)]], [], "all partitions have an owner"),
        (
            [[generation(10, has(0, 1, 2))], [sampled(11_000, orders=3)], [sampled(60_000, orders=6)]],
            [(3, 60_000), (4, 60_000), (5, 60_000)],
            "32a: the topic grew, the client does not notice, and the group writes no record",
        ),
        (
            [[generation(10, has(0, 1))], [sampled(11_000, orders=3)]],
            [(2, 11_000)],
            "32c: the last partition is dropped in the first generation: unowned since it was first seen",
        ),
        (
            [[generation(10, has(0, 1))], [sampled(11_000, orders=3)], [generation(20, has(0, 1))]],
            [],
            "the sample is older than the record: the topic may have been recreated with two partitions",
        ),
        (
            [
                [generation(10, has(0, 1))],
                [sampled(11_000, orders=3)],
                [generation(20, has(0, 1))],
                [sampled(21_000, orders=3)],
            ],
            [(2, 11_000)],
            "a later sample still has the partition: the start time stays",
        ),
        (
            [
                [generation(10, has(0, 1, 2))],
                [sampled(11_000, orders=3)],
                [generation(20, has(0, 1))],
                [sampled(21_000, orders=3)],
            ],
            [(2, 20_000)],
            "a later sample still has the partition, and samples agree: unowned since the record",
        ),
        (
            [[generation(10, has(0, 1, 2))], [sampled(11_000, orders=3)], [generation(20, has(0, 2))]],
            [(1, 20_000)],
            "a higher partition is assigned, so this partition exists",
        ),
        (
            [
                [generation(10, has(0, 1, 2))],
                [sampled(11_000, orders=3)],
                [generation(20, has(0, 2)), generation(30, has(0, 2))],
            ],
            [(1, 20_000)],
            "the partition is left out again: the start time stays",
        ),
        (
            [
                [generation(10, has(0, 1, 2))],
                [sampled(11_000, orders=3)],
                [generation(20, has(0, 2)), generation(30, has(0, 1, 2)), generation(40, has(0, 2))],
            ],
            [(1, 40_000)],
            "the partition had an owner in between, even in the same batch",
        ),
        (
            [[generation(10, has(0, 1, 2))], [sampled(11_000, orders=3)], [sampled(20_000, orders=None)]],
            [],
            "a deleted topic has no partitions",
        ),
        (
            [
                [generation(10, has(0, 1, 2))],
                [sampled(11_000, orders=3)],
                [generation(20, has(0, 2))],
                [sampled(21_000, orders=None)],
            ],
            [],
            "1: the topic was deleted, and the next sample shows this: evaluated again",
        ),
        (
            [
                [generation(10, has(0, 1, 2))],
                [sampled(11_000, orders=3)],
                [generation(20, has(0))],
                [sampled(21_000, orders=1)],
            ],
            [],
            "1: the topic was recreated with fewer partitions",
        ),
        (
            [[generation(10, has(0, 2**31 - 1))], [sampled(11_000, orders=2)]],
            [(1, 11_000)],
            "an absurd partition number must not cost time",
        ),
        (
            [[generation(10, has(0, owned=[7]))], [sampled(11_000, orders=1)]],
            [],
            "39: a member claims a partition that does not exist",
        ),
        (
            [[generation(10, has(0, topics=[ORDERS]), protocol="mine")], [sampled(11_000, orders=2)]],
            [(1, 11_000)],
            "the rule applies to every strategy, also to an unknown one",
        ),
        ([[generation(10, has(0), protocol="stream")], [sampled(11_000, orders=2)]], [(1, 11_000)], "Kafka Streams"),
        (
            [[generation(10, has(0), has(name="b", topics=["sales"]))], [sampled(11_000, orders=1, sales=2)]],
            [(0, 11_000), (1, 11_000)],
            "32b: the leader ignores subscriptions: a whole topic has no owner",
        ),
    ],
)
def test_partitions_without_an_owner(batches: list[list[GroupEvent]], found: list[tuple[int, int]], why: str) -> None:
    assert unowned(*batches) == found, why


@pytest.mark.parametrize(
    ("protocol", "claims", "is_withheld", "why"),
    [
        ("cooperative-sticky", [1], True, "KIP-429: a member revokes the partition first"),
        ("mine", [1], True, "an unknown strategy may be cooperative"),
        ("cooperative-sticky", [], False, "no member owned the partition before"),
        ("range", [1], False, "an eager strategy moves partitions at once, whatever a member claims"),
    ],
)
def test_partitions_that_a_cooperative_round_withholds(
    protocol: str, claims: list[int], is_withheld: bool, why: str
) -> None:
    """Rule 5."""
    group = [generation(10, has(0, owned=[0, *claims]), protocol=protocol)]
    found = violations(group, [sampled(11_000, orders=2)])
    assert found is not None
    assert [(one.partition, one.is_withheld) for one in found.unowned] == [(1, is_withheld)], why
    assert found.unowned_partitions() == (0 if is_withheld else 1), why


@pytest.mark.parametrize(
    ("protocol", "twice", "why"),
    [
        ("range", ((ORDERS, 1),), "two members read each record"),
        ("stream", ((ORDERS, 1),), "an active task has one owner"),
        ("RoundRobinAssigner", ((ORDERS, 1),), "KafkaJS assigns each partition to one member"),
        ("rack-affinity", ((ORDERS, 1),), "kafka-go assigns each partition to one member"),
        ("faust", (), "Faust's standby tables are partitions in the assignment of a second member"),
        ("mine", (), "an unknown strategy may share partitions on purpose"),
    ],
)
def test_one_owner_unless_the_strategy_shares_partitions(
    protocol: str, twice: tuple[tuple[str, int], ...], why: str
) -> None:
    """Rule 7."""
    found = violations([generation(10, has(0, 1), has(1, name="b"), protocol=protocol)])
    assert found is not None
    assert found.owned_twice == twice, why


@pytest.mark.parametrize("protocol", ["range", "RoundRobinAssigner", "faust"])
def test_an_owner_subscribes_to_its_topic_under_every_strategy(protocol: str) -> None:
    """KafkaJS's leader assigned partitions to a member that does not subscribe to the topic.

    Before, nothing showed it.
    """
    found = violations([generation(10, has(0), has(1, name="b", topics=["sales"]), protocol=protocol)])
    assert found is not None
    assert found.not_subscribed == ((ORDERS, 1),)


def test_a_member_with_unknown_subscription_breaks_no_subscription_rule() -> None:
    """Rule 6."""
    found = violations([generation(10, replace(has(0), subscription=None))])
    assert found is not None
    assert found.not_subscribed == ()


@pytest.mark.parametrize(
    ("batches", "why"),
    [
        ([[emptied(10, 1)]], "the group has no members"),
        (
            [[generation(10, has(0))], [sampled(11_000, orders=2)], [emptied(20, 2)]],
            "the group has no members any more",
        ),
        ([[generation(10, has(0))], [tombstoned(11)]], "the group is deleted"),
        (
            [[generation(10, has(0), kind="connect")], [sampled(11_000, orders=2)]],
            "Connect does not assign topic partitions",
        ),
        ([[*formed(0, group_type="share")], [sampled_with_id(9_000, 3)]], "members of a share group share partitions"),
        ([[*formed(0, group_type="streams")], [sampled_with_id(9_000, 3)]], "these records do not contain tasks"),
    ],
)
def test_groups_without_common_rules(batches: list[list[GroupEvent]], why: str) -> None:
    """Rule 1."""
    assert violations(*batches) is None, why


def test_a_kip_848_group_is_evaluated_by_its_targets() -> None:
    """Members that still move to their targets are working, so no partition is unowned."""
    assert unowned(formed(0), [sampled_with_id(9_000, 2)]) == []
    assert unowned(formed(0), [sampled_with_id(9_000, 2)], [sampled_with_id(60_000, 3)]) == [(2, 60_000)]
    on_the_way = [*formed(0), current(5, held=(("id", (0,)),), state="UnrevokedPartitions")]
    assert unowned(on_the_way, [sampled_with_id(9_000, 2)]) == []


def test_violations_are_unknown_during_a_rebalance_and_keep_their_start_time_after_it() -> None:
    """Rule 2. During a rebalance, a guess could cause a false alert.

    If each rebalance set a new start time, a group with many rebalances would never have an alert.
    """
    left_out = [*formed(0), target(5, "m", (("id", (1,)),)), target_epoch(6, 3)]
    found = violations(left_out, [sampled_with_id(9_000, 2)])
    assert found is not None
    assert [(one.partition, one.since_ms) for one in found.unowned] == [(0, 9_000)]
    joins = [joined(10, "n", modern_member()), epoch(11, 4)]
    while_assigning = violations(left_out, [sampled_with_id(9_000, 2)], joins)
    assert while_assigning == with_is_known(found, is_known=False)
    assigned = [target(12, "m", (("id", (1,)),)), target(13, "n", ()), target_epoch(14, 4)]
    assert unowned(left_out, [sampled_with_id(9_000, 2)], joins, assigned) == [(0, 9_000)]


def unreadable(offsets_topic_offset: int) -> GroupEvent:
    """Return a record of a classic group that cannot be decoded."""
    return DecodeFailed(at(offsets_topic_offset), "classic", "group", "")


def test_an_undecodable_record_keeps_the_start_time_of_unowned_partitions() -> None:
    """Rule 2. Before, such a record removed the unowned partitions and the samples, so their time started again.

    One such record every four minutes was enough to prevent the condition for ever.
    """
    first = [[generation(10, has(0))], [sampled(11_000, orders=2)]]
    before = violations(*first)
    assert before is not None
    assert violations(*first, [unreadable(250)]) == with_is_known(before, is_known=False)
    again = [[unreadable(250)], [generation(251, has(0))], [sampled(252_000, orders=2)]]
    assert unowned(*first, *again) == [(1, 11_000)]


def test_an_undecodable_record_does_not_give_rules_to_a_group_that_has_none() -> None:
    assert violations([generation(10, has(0), kind="connect"), unreadable(20)]) is None


def test_a_corrected_sample_also_corrects_the_start_time() -> None:
    """Rule 4. The first sample has a clock that is an hour ahead. Before, the condition started an hour late."""
    ahead = [[generation(10, has(0))], [sampled(3_611_000, orders=2)]]
    assert unowned(*ahead) == [(1, 3_611_000)]
    corrected = TopicsSampled({ORDERS: TopicMetadata(2, 16_000)}, is_time_corrected=True)
    assert unowned(*ahead, [corrected]) == [(1, 16_000)]


def with_is_known(found: RuleViolations, *, is_known: bool) -> RuleViolations:
    """Return the violations with `is_known` replaced."""
    return RuleViolations(found.unowned, is_known=is_known)


def test_unowned_partitions_are_unknown_while_a_members_assignment_is_unknown() -> None:
    """Rule 2: the member can own any partition."""
    found = violations([generation(10, has(0), replace(has(name="b"), assignment=None))], [sampled(11_000, orders=3)])
    assert found == RuleViolations(is_known=False)
    assert found.unowned_partitions() is None


def test_other_members_still_break_rules_while_a_members_assignment_is_unknown() -> None:
    """Two members read each record of a partition. Before, an undecodable assignment of a third member hid this."""
    unread = replace(has(name="c"), assignment=None)
    found = violations([generation(10, has(0, 1), has(1, name="b"), has(2, name="d", topics=["sales"]), unread)])
    assert found is not None
    assert (found.owned_twice, found.not_subscribed) == (((ORDERS, 1),), ((ORDERS, 2),))
    assert found.unowned_partitions() is None


def test_topic_ids_without_a_name_hide_owners() -> None:
    """Rule 2."""
    assert violations(formed(0)) == RuleViolations(is_known=False)


def test_the_unowned_partitions_of_a_large_topic_are_found_in_linear_time() -> None:
    """Each record runs this rule. A search of all owned partitions for each unowned partition took 7 s."""
    snapshot = GroupSnapshot("g")
    for event in (generation(10, has()), sampled(11_000, orders=20_000), generation(20, has(*range(10_000)))):
        snapshot = advance(snapshot, event)
    started = process_time()
    found = with_unowned(snapshot, None)
    assert process_time() - started < 1
    assert found is not None
    assert [one.partition for one in found.unowned if one.is_pending] == [*range(10_000, 20_000)]
