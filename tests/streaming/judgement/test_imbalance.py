"""How evenly partitions are shared, in total and per topic."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.judgement.imbalance import PartitionShares, imbalance
from streaming.protocol.classic import ClassicMember
from tests.streaming.groups import member, metadata


def spread(*held: Sequence[int]) -> list[ClassicMember]:
    """Return members of the topic `orders`, each with the partitions given."""
    return [member(f"c{number}", {"orders": partitions}) for number, partitions in enumerate(held)]


@pytest.mark.parametrize(
    ("held", "largest", "smallest", "idle", "ratio", "why"),
    [
        ([[0, 1, 2], [3], [4], [5], [6]], 3, 1, 0, 15 / 7, "7 over 5, unevenly: 2.14"),
        ([[0, 1], [2, 3], [4], [5], [6]], 2, 1, 0, 10 / 7, "7 over 5, as even as can be: 1.43"),
        ([[0], [1], [2]], 1, 1, 0, 1.0, "exactly even"),
        ([[0], [1], [2], [], []], 1, 0, 2, 5 / 3, "five members on three partitions: two idle"),
        ([[0, 1, 2]], 3, 3, 0, 1.0, "one member has all, and that is even"),
        ([[], []], 0, 0, 2, None, "nothing assigned: no ratio, neither 0 nor infinite"),
    ],
)
def test_the_total_counts_every_member(  # noqa: PLR0913, PLR0917 - a row of the table
    held: list[list[int]], largest: int, smallest: int, idle: int, ratio: float | None, why: str
) -> None:
    total, by_topic = imbalance(metadata(1, spread(*held)))
    assigned = sum(map(len, held))
    assert total == PartitionShares(None, len(held), assigned, largest, smallest, idle, ratio), why
    assert by_topic == PartitionShares("orders", len(held), assigned, largest, smallest, idle, ratio), why


def test_sticky_can_be_even_in_total_and_skewed_in_every_topic() -> None:
    """confluent-kafka-dotnet 1712: 4/0 in one topic against 0/4 in the other. One number cannot show it."""
    both = ["a", "b"]
    first, second = member("c0", {"a": [0, 1, 2, 3]}, both), member("c1", {"b": [0, 1, 2, 3]}, both)
    assert [
        (shares.topic, shares.max_to_mean_ratio, shares.idle_members)
        for shares in imbalance(metadata(1, [first, second]))
    ] == [
        (None, 1.0, 0),
        ("a", 2.0, 1),
        ("b", 2.0, 1),
    ]


def test_a_topic_counts_its_subscribers_only() -> None:
    """A member is not idle in a topic it never asked for."""
    members = [member("c0", {"a": [0, 1]}, ["a"]), member("c1", {"b": [0]}, ["b"]), member("c2", {}, ["a"])]
    shares = {one.topic: (one.members, one.idle_members) for one in imbalance(metadata(1, members))}
    assert shares == {None: (3, 1), "a": (2, 1), "b": (1, 0)}


def test_a_group_without_members_has_no_shares() -> None:
    assert imbalance(metadata(1)) == ()


def test_a_topic_subscribed_to_twice_by_one_member_counts_it_once() -> None:
    (_, orders) = imbalance(metadata(1, [member("m", {"orders": [0]}, ["orders", "orders"])]))
    assert orders.members == 1


@given(st.lists(st.lists(st.integers(0, 20), max_size=6), min_size=1, max_size=6))
def test_the_ratio_is_at_least_one_and_at_most_the_number_of_members(held: list[list[int]]) -> None:
    total, *_ = imbalance(metadata(1, spread(*held)))
    assert total.assigned_partitions == sum(map(len, held))
    assert total.min_partitions <= total.max_partitions
    if total.max_to_mean_ratio is not None:
        assert 1 - 1e-9 <= total.max_to_mean_ratio <= total.members + 1e-9
