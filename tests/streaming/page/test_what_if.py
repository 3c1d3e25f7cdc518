"""The what-if table of the page answers as the command does, or says why it does not."""

from __future__ import annotations

import pytest

import streaming.page.what_if
from assignors.what_if import what_if_as_json
from streaming.group.snapshot import GroupSnapshot
from streaming.page.what_if import TODAY, answers
from tests.streaming.groups import advanced, formed, member, written
from tests.streaming.page.scene import STRATEGIES, TOPICS, Member, generation, record_of

WIDE = ("orders", "payments", "shipments")
FIVE = record_of("g", [generation(1, 60, "range", [Member(f"m-{letter}", WIDE) for letter in "abcde"])]).snapshot


def test_every_strategy_is_computed_for_the_usual_changes_and_today_stands_first() -> None:
    found = answers(FIVE, STRATEGIES)
    assert [change.change for change in found.changes] == ["as it is", "1 member more", "1 member fewer"]
    assert [one.strategy for one in found.changes[0].alternatives] == [TODAY, *STRATEGIES]
    today, by_range, by_roundrobin, *_ = found.changes[0].alternatives
    assert (today.sizes, today.score, today.excess_partitions, today.moved_partitions) == ("3x5 1x7 1x8", 87.5, 2, 0)
    assert (by_range.sizes, by_range.moved_partitions) == (today.sizes, 0), "it is what range gives"
    assert (by_roundrobin.sizes, by_roundrobin.score) == ("5x6", 100)
    assert found.changes[0].partitions == sum(TOPICS[topic] for topic in WIDE)
    assert what_if_as_json.__doc__, "the command's own form has the same names"


def test_a_lone_member_cannot_leave() -> None:
    alone = record_of("g", [generation(1, 60, "range", [Member("m-a", ["orders"])])]).snapshot
    assert [change.change for change in answers(alone, STRATEGIES).changes] == ["as it is", "1 member more"]


@pytest.mark.parametrize(
    ("snapshot", "why"),
    [
        (GroupSnapshot("g"), "nobody shares out partitions"),
        (advanced([written(1, 1, [member("a", {"orders": [0]})])]), "not known of: orders"),
        (advanced(formed(1)), "not known of: orders"),
    ],
)
def test_where_something_is_not_known_nothing_is_computed(snapshot: GroupSnapshot, why: str) -> None:
    """Rule 1: a number of partitions that was guessed makes the answer a guess."""
    found = answers(snapshot, STRATEGIES)
    assert found.changes == ()
    assert found.why_not is not None
    assert why in found.why_not


@pytest.mark.parametrize("limit", ["MOST_PARTITIONS", "MOST_MEMBERS"])
def test_a_large_group_is_left_to_the_command(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """Rule 2."""
    monkeypatch.setattr(streaming.page.what_if, limit, 4)
    assert "rebalance-monitor what-if" in (answers(FIVE, STRATEGIES).why_not or "")
