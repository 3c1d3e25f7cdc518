"""The what-if table of the page answers as the command does, or says why it does not."""

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


def asked(record: GroupState, strategies: Sequence[str]) -> WhatIfAnswers:
    """Return what the page of a group shows."""
    return compute_what_if(evaluate(RecordedGroup("g", record, state=record.snapshot.state)), record, strategies)


def test_every_strategy_is_computed_for_the_usual_changes_and_today_stands_first() -> None:
    found = asked(FIVE, STRATEGIES)
    assert [change.change for change in found.changes] == ["as it is", "1 member more", "1 member fewer"]
    assert [one.strategy for one in found.changes[0].alternatives] == [TODAY, *STRATEGIES]
    today, by_range, by_roundrobin, *_ = found.changes[0].alternatives
    assert (today.sizes, today.score, today.excess_partitions, today.moved_partitions) == ("3x5 1x7 1x8", 87.5, 2, 0)
    assert (by_range.sizes, by_range.moved_partitions) == (today.sizes, 0), "it is what range gives"
    assert (by_roundrobin.sizes, by_roundrobin.score) == ("5x6", 100)
    assert found.changes[0].partitions == sum(TOPICS[topic] for topic in WIDE)
    assert what_if_as_json.__doc__, "the command's own form has the same names"


def test_a_lone_member_cannot_leave() -> None:
    alone = record_of("g", [generation(1, 60, "range", [Member("m-a", ["orders"])])])
    assert [change.change for change in asked(alone, STRATEGIES).changes] == ["as it is", "1 member more"]


def of_kind(**kind: str) -> GroupSnapshot:
    return advanced([GroupMetadataWritten(Position(0, 1, 1), metadata(1, [member("a", {"orders": [0]})], **kind))])


@pytest.mark.parametrize(
    ("snapshot", "why"),
    [
        (GroupSnapshot("g"), "no assignment that can be evaluated"),
        (advanced([written(1, 1, [member("a", {"orders": [0]})])]), "unknown for: orders"),
        (advanced(formed(1)), "unknown for: orders"),
        (of_kind(protocol="stream"), "no assignment that can be evaluated"),
        (of_kind(protocol_type="connect"), "no assignment that can be evaluated"),
    ],
)
def test_where_something_is_not_known_nothing_is_computed(snapshot: GroupSnapshot, why: str) -> None:
    """Rule 1: a number of partitions that was guessed makes the answer a guess.

    Kafka Streams and Connect groups had a table, although no strategy was ever held against them.
    """
    evaluation = evaluate_snapshot(snapshot, [BUILT_IN[name] for name in STRATEGIES])
    found = asked(GroupState(snapshot, evaluation), STRATEGIES)
    assert found.changes == ()
    assert found.error is not None
    assert why in found.error


class Own:
    """A user's strategy: as roundrobin, under another name."""

    name, rounds = "rack-first", 1

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Deal them out."""
        return BUILT_IN["roundrobin"].assign(group)


class Broken(Own):
    """One that gives no answer."""

    name = "broken"

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Fail as the guard tells of it."""
        raise AssignorFailedError("timeout", f"no answer of {len(group.members)} members in 5 s")


@pytest.mark.parametrize("limit", ["MAX_PARTITIONS", "MAX_MEMBERS"])
def test_a_large_group_shows_what_was_computed_with_its_verdict_and_leaves_changes_to_the_command(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Rule 2: the same numbers, without sizes."""
    at_once = asked(FIVE, STRATEGIES).changes[0]
    monkeypatch.setattr(streaming.page.what_if, limit, 4)
    found = asked(FIVE, STRATEGIES)
    assert "rebalance-monitor what-if" in (found.error or "")
    (as_it_is,) = found.changes
    assert (as_it_is.change, as_it_is.members, as_it_is.partitions) == ("as it is", 5, 30)
    assert list(as_it_is.alternatives) == [replace(one, sizes=None) for one in at_once.alternatives]


def test_a_users_own_strategies_stand_below_with_what_was_computed_in_their_own_process() -> None:
    """Rule 3: an answer, and what was done instead of one."""
    found = asked(record_of("g", [FIRST], own=[Own(), Broken()]), (*STRATEGIES, "rack-first", "broken"))
    *_, own, broken = found.changes[0].alternatives
    by_roundrobin = next(one for one in found.changes[0].alternatives if one.strategy == "roundrobin")
    assert own == replace(by_roundrobin, strategy="rack-first", sizes=None)
    assert broken == Alternative("broken", failure="timeout: no answer of 5 members in 5 s")
    assert [one.strategy for one in found.changes[1].alternatives] == list(STRATEGIES)


def test_what_was_computed_for_another_generation_is_not_shown() -> None:
    """Rule 4: the first generation's answers say nothing of the second."""
    second = generation(2, 30, "range", [Member("m-a", WIDE)])
    stale = record_of("g", [FIRST], own=[Own()]).alternatives
    now = msgspec.structs.replace(record_of("g", [FIRST, second], own=[Own()]), alternatives=stale)
    assert [one.strategy for one in asked(now, STRATEGIES).changes[0].alternatives] == [TODAY, *STRATEGIES]
