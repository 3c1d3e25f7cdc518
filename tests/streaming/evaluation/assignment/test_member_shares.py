"""Tests for actual and expected partitions of each member. Unknown values are None."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.assignment import drift as verdicts
from streaming.evaluation.assignment.drift import MisplacedPartition, StrategyDrift
from streaming.evaluation.assignment.member_shares import expected_partitions, lag_of, topic_shares
from streaming.group.members import GroupMember, TopicPartitions, members
from tests.streaming.groups import advanced, current, epoch, joined, sampled, target, target_epoch

MATCH = StrategyDrift("range", True, verdicts.MATCH, "", 0)
Shares = list[tuple[str, str, int | None, int | None]]


def member(
    member_id: str,
    assigned: TopicPartitions | None = (),
    topics: Iterable[str] | None = ("orders",),
    target_: TopicPartitions | None = None,
) -> GroupMember:
    """Return a member whose target equals its assignment, unless another target is given."""
    subscribed = None if topics is None else tuple(topics)
    shall = assigned if target_ is None else target_
    return GroupMember(member_id, None, "app", "/h", None, subscribed, None, None, None, assigned, shall, ())


def drifted(*misplaced: MisplacedPartition) -> StrategyDrift:
    """Return a verdict with these misplaced partitions."""
    return StrategyDrift("range", True, verdicts.DRIFT, "", len(misplaced), misplaced, ("replay_differs",))


def shares(group: Iterable[GroupMember], own: StrategyDrift | None) -> Shares:
    """Return the shares, with members by id."""
    return [(one.member.member_id, *astuple(one)[1:]) for one in topic_shares(list(group), own)]


ORDERS = (("orders", 0), ("orders", 1))
CASES: list[tuple[list[GroupMember], StrategyDrift | None, Shares, str]] = [
    ([member("a", ORDERS)], MATCH, [("a", "orders", 2, 2)], "rules 1 and 2"),
    ([member("a", ())], MATCH, [("a", "orders", 0, 0)], "rule 3: idle is 0, not unknown"),
    ([member("a", None)], None, [("a", "orders", None, None)], "rule 3: an unknown assignment is None"),
    ([member("a", ORDERS, None)], MATCH, [("a", "orders", 2, 2)], "rule 3: an unknown subscription does not matter"),
    (
        [member("a", (("x", 0),))],
        MATCH,
        [("a", "orders", 0, 0), ("a", "x", 1, 1)],
        "the member got a topic without subscribing to it",
    ),
    (
        [member("a", ORDERS), member("b")],
        drifted(MisplacedPartition("orders", 1, ("a",), "b")),
        [("a", "orders", 2, 1), ("b", "orders", 0, 1)],
        "rule 2",
    ),
    (
        [member("a", ORDERS[:1]), member("b")],
        drifted(MisplacedPartition("orders", 1, (), "b")),
        [("a", "orders", 1, 1), ("b", "orders", 0, 1)],
        "rule 2: a partition without an owner is expected at a member",
    ),
    (
        [member("a", ORDERS), member("b", ORDERS[1:])],
        drifted(MisplacedPartition("orders", 1, ("a", "b"), "b")),
        [("a", "orders", 2, 1), ("b", "orders", 1, 1)],
        "rule 2: two members own it",
    ),
    (
        [member("a", (("gone", 0),), ("orders",))],
        drifted(MisplacedPartition("gone", 0, ("a",), None)),
        [("a", "gone", 1, 0), ("a", "orders", 0, 0)],
        "rule 2: no member should own it",
    ),
    (
        [member("a-2", ORDERS), member("b")],
        drifted(MisplacedPartition("orders", 1, ("a-1",), "b")),
        [("a-2", "orders", 2, None), ("b", "orders", 0, None)],
        "rule 2: a static member returned with a new member id",
    ),
    (
        [member("a", ORDERS[:1], target_=ORDERS)],
        MATCH,
        [("a", "orders", 1, 2)],
        "rule 1: the member still moves to its target (KIP-848)",
    ),
]


@pytest.mark.parametrize(("group", "own", "expected", "why"), CASES)
def test_shares_follow_the_rules(
    group: list[GroupMember], own: StrategyDrift | None, expected: Shares, why: str
) -> None:
    assert shares(group, own) == expected, why


@pytest.mark.parametrize("verdict", [verdicts.UNKNOWN, verdicts.EQUIVALENT, verdicts.WITHHELD, verdicts.NOT_EVALUATED])
def test_without_a_listed_answer_nothing_is_expected(verdict: str) -> None:
    """Rule 2: a replay that differs without proving drift does not define the expected partitions."""
    own = StrategyDrift("sticky", True, verdict)
    assert expected_partitions([member("a", ORDERS)], own) is None
    assert shares([member("a", ORDERS)], own) == [("a", "orders", 2, None)]
    assert expected_partitions([member("a", ORDERS)], None) is None


def test_a_topic_without_a_name_is_left_out_and_does_not_make_other_topics_zero() -> None:
    """KIP-848: records have topic ids, and a sample adds names. Until then "0 of orders" would be a guess."""
    events = [joined(0), epoch(1), target(2), target_epoch(3), current(4), sampled(9_000, orders=3)]
    snapshot = advanced(events)
    assert snapshot.modern is not None
    unnamed = snapshot.modern.unnamed_topic_ids()
    assert unnamed == {"id"}
    assert [(one.topic, one.partitions) for one in topic_shares(members(snapshot), None, unnamed)] == [("orders", None)]


placed = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from("abc"), st.sampled_from("abc")), unique_by=lambda it: it[0]
)


@given(placed)
def test_expected_partitions_are_the_actual_ones_with_every_misplaced_partition_moved(
    partitions: list[tuple[int, str, str]],
) -> None:
    """Drift is shown by partition and by member, and both agree."""
    group = [member(name, tuple(("orders", n) for n, has, _ in partitions if has == name)) for name in "abc"]
    own = drifted(*(MisplacedPartition("orders", n, (has,), wants) for n, has, wants in partitions if has != wants))
    expected = {name: sum(wants == name for _, _, wants in partitions) for name in "abc"}
    assert expected_partitions(group, own) == expected
    assert {one.member.member_id: one.expected for one in topic_shares(group, own)} == expected


def test_a_members_lag_is_complete_or_unknown() -> None:
    """Rule 4: a sum without the unknown lag would be too small."""
    lag = {("orders", 0): 5, ("orders", 1): None}
    assert lag_of(ORDERS[:1], lag) == 5
    assert lag_of(ORDERS, lag) is None, "the lag of one partition is unknown"
    assert lag_of((("orders", 7),), lag) is None, "never committed there"
    assert lag_of(None, lag) is None, "the member's assignment is unknown"
    assert lag_of((), lag) == 0
