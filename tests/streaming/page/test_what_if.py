"""Tests that the what-if table of the page agrees with the command, or shows why there is no result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

import streaming.page.what_if
from assignors import BUILT_IN, AssignorFailedError, GroupAssignment, GroupSpec
from assignors.what_if.what_if import what_if_as_json
from streaming.evaluation.evaluate import RecordedGroup, evaluate
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.snapshot_evaluation import evaluate_snapshot
from streaming.events import GroupMetadataWritten, Position
from streaming.group.snapshot import GroupSnapshot
from streaming.page.what_if import TODAY, Alternative, WhatIfAnswers, compute_what_if
from tests.streaming.groups import advanced, formed, member, metadata, written
from tests.streaming.page.scene import STRATEGIES, TOPICS, Member, generation, record_of

WIDE = ("orders", "payments", "shipments")
FIRST = generation(1, 60, "range", [Member(f"m-{letter}", WIDE) for letter in "abcde"])
FIVE = record_of("g", [FIRST])


def what_if_of(record: GroupState, strategies: Sequence[str]) -> WhatIfAnswers:
    """Return the what-if table of a group's page."""
    return compute_what_if(evaluate(RecordedGroup("g", record, state=record.snapshot.state)), record, strategies)


def test_every_strategy_is_computed_for_the_usual_changes_and_today_comes_first() -> None:
    what_if = what_if_of(FIVE, STRATEGIES)
    assert [change.change for change in what_if.changes] == ["as it is", "1 member more", "1 member fewer"]
    assert [one.strategy for one in what_if.changes[0].alternatives] == [TODAY, *STRATEGIES]
    today, by_range, by_roundrobin, *_ = what_if.changes[0].alternatives
    assert (today.sizes, today.score, today.excess_partitions, today.moved_partitions) == ("3x5 1x7 1x8", 87.5, 2, 0)
    assert (by_range.sizes, by_range.moved_partitions) == (today.sizes, 0), "the current assignment is range's"
    assert (by_roundrobin.sizes, by_roundrobin.score) == ("5x6", 100)
    assert what_if.changes[0].partitions == sum(TOPICS[topic] for topic in WIDE)
    assert what_if_as_json.__doc__, "the output of the command has the same names"


def test_a_group_of_one_member_has_no_change_with_one_member_fewer() -> None:
    alone = record_of("g", [generation(1, 60, "range", [Member("m-a", ["orders"])])])
    assert [change.change for change in what_if_of(alone, STRATEGIES).changes] == ["as it is", "1 member more"]


def snapshot_with(**kind: str) -> GroupSnapshot:
    return advanced([GroupMetadataWritten(Position(0, 1, 1), metadata(1, [member("a", {"orders": [0]})], **kind))])


@pytest.mark.parametrize(
    ("snapshot", "why"),
    [
        (GroupSnapshot("g"), "no assignment that can be evaluated"),
        (advanced([written(1, 1, [member("a", {"orders": [0]})])]), "unknown for: orders"),
        (advanced(formed(1)), "unknown for: orders"),
        (snapshot_with(protocol="stream"), "no assignment that can be evaluated"),
        (snapshot_with(protocol_type="connect"), "no assignment that can be evaluated"),
    ],
)
def test_without_all_needed_facts_nothing_is_computed(snapshot: GroupSnapshot, why: str) -> None:
    """Rule 1: with a guessed partition count, the result would be a guess.

    Kafka Streams and Connect groups once had a table, although their assignment is not evaluated.
    """
    evaluation = evaluate_snapshot(snapshot, [BUILT_IN[name] for name in STRATEGIES])
    what_if = what_if_of(GroupState(snapshot, evaluation), STRATEGIES)
    assert what_if.changes == ()
    assert what_if.error is not None
    assert why in what_if.error


class Own:
    """A user's strategy that equals roundrobin but has a different name."""

    name, rounds = "rack-first", 1

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Return roundrobin's assignment."""
        return BUILT_IN["roundrobin"].assign(group)


class Broken(Own):
    """A user's strategy that times out."""

    name = "broken"

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Raise the error that the guarded process would report."""
        raise AssignorFailedError("timeout", f"no answer of {len(group.members)} members in 5 s")


@pytest.mark.parametrize("limit", ["MAX_PARTITIONS", "MAX_MEMBERS"])
def test_a_large_group_shows_the_results_of_its_evaluation_and_refers_to_the_command(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Rule 2: the numbers are the same, but the sizes are missing."""
    computed_now = what_if_of(FIVE, STRATEGIES).changes[0]
    monkeypatch.setattr(streaming.page.what_if, limit, 4)
    what_if = what_if_of(FIVE, STRATEGIES)
    assert "rebalance-monitor what-if" in (what_if.error or "")
    (as_it_is,) = what_if.changes
    assert (as_it_is.change, as_it_is.members, as_it_is.partitions) == ("as it is", 5, 30)
    assert list(as_it_is.alternatives) == [replace(one, sizes=None) for one in computed_now.alternatives]


def test_users_strategies_come_last_with_the_results_of_their_own_process() -> None:
    """Rule 3: one strategy has a result, and the other has an error."""
    what_if = what_if_of(record_of("g", [FIRST], own=[Own(), Broken()]), (*STRATEGIES, "rack-first", "broken"))
    *_, own, broken = what_if.changes[0].alternatives
    by_roundrobin = next(one for one in what_if.changes[0].alternatives if one.strategy == "roundrobin")
    assert own == replace(by_roundrobin, strategy="rack-first", sizes=None)
    assert broken == Alternative("broken", failure="timeout: no answer of 5 members in 5 s")
    assert [one.strategy for one in what_if.changes[1].alternatives] == list(STRATEGIES)


def test_results_of_a_different_generation_are_not_shown() -> None:
    """Rule 4: results of the first generation do not apply to the second."""
    second = generation(2, 30, "range", [Member("m-a", WIDE)])
    stale = record_of("g", [FIRST], own=[Own()]).alternatives
    now = msgspec.structs.replace(record_of("g", [FIRST, second], own=[Own()]), alternatives=stale)
    assert [one.strategy for one in what_if_of(now, STRATEGIES).changes[0].alternatives] == [TODAY, *STRATEGIES]
