"""Tests that the what-if table of the page agrees with the command, or shows why there is no result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import streaming.evaluation.what_if.inputs
from assignors import BUILT_IN, AssignorFailedError, GroupAssignment, GroupSpec, TopicPartition
from assignors.what_if.what_if import what_if_as_json
from streaming.evaluation.alternatives import TODAY as STORED_TODAY
from streaming.evaluation.evaluate import RecordedGroup, evaluate
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.snapshot_evaluation import evaluate_snapshot
from streaming.events import GroupMetadataWritten, Position, TopicMetadata, TopicsSampled
from streaming.group.members import members
from streaming.group.snapshot import GroupSnapshot
from streaming.page.application import Pages
from streaming.page.what_if import TODAY, Alternative, WhatIfAnswers, compute_what_if
from tests.streaming.groups import advanced, formed, member, metadata, written
from tests.streaming.page.scene import NOW_MS, STRATEGIES, TOPICS, Member, generation, record_of, scene
from tests.streaming.page.test_application import Seen, ask, pages_of

WIDE = ("orders", "payments", "shipments")
FIRST = generation(1, 60, "range", [Member(f"m-{letter}", WIDE) for letter in "abcde"])
FIVE = record_of("g", [FIRST])
NO_RATES: Mapping[TopicPartition, float] = {}


def what_if_of(
    record: GroupState, strategies: Sequence[str], rates: Mapping[TopicPartition, float] = NO_RATES
) -> WhatIfAnswers:
    """Return the what-if table of a group's page."""
    return compute_what_if(evaluate(RecordedGroup("g", record, state=record.snapshot.state)), record, strategies, rates)


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
        (advanced([written(1, 1, [member("a", {"orders": [0]})])]), "of these topics is unknown: orders"),
        (advanced(formed(1)), "of these topics is unknown: orders"),
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
    monkeypatch.setattr(streaming.evaluation.what_if.inputs, limit, 4)
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


def test_the_page_and_the_stored_results_are_equal_for_an_old_leader() -> None:
    """KIP-881: a leader whose library is older than this KIP does not use the racks of topics and members."""
    old_leader = member("c", {"orders": [2]})
    assert old_leader.subscription is not None
    old_leader = replace(old_leader, subscription=replace(old_leader.subscription, version=1))
    racks = TopicMetadata(3, 9_000, racks=(("west",), ("east",), ("east",)))
    others = [member("a", {"orders": [0]}, rack_id="east"), member("b", {"orders": [1]}, rack_id="west")]
    record = GroupState(GroupSnapshot("g"))
    for event in (written(1, 1, [old_leader, *others]), TopicsSampled({"orders": racks})):
        record = apply_batch(record, [event], [BUILT_IN[name] for name in STRATEGIES]).record
    assert record.alternatives is not None
    stored = [
        (one.strategy, one.score, one.idle_members, one.moved_partitions)
        for one in record.alternatives.as_it_is().outcomes
        if one.strategy != STORED_TODAY
    ]
    page = [
        (one.strategy, one.score, one.idle_members, one.moved_partitions)
        for one in what_if_of(record, STRATEGIES).changes[0].alternatives
        if one.strategy != TODAY
    ]
    assert page == stored
    assert [moved for strategy, _, _, moved in stored if strategy == "range"] == [0], "the leader ignored the racks"


def test_results_of_a_different_generation_are_not_shown() -> None:
    """Rule 4: results of the first generation do not apply to the second."""
    second = generation(2, 30, "range", [Member("m-a", WIDE)])
    stale = record_of("g", [FIRST], own=[Own()]).alternatives
    now = msgspec.structs.replace(record_of("g", [FIRST, second], own=[Own()]), alternatives=stale)
    assert [one.strategy for one in what_if_of(now, STRATEGIES).changes[0].alternatives] == [TODAY, *STRATEGIES]


RATES = {(topic, number): 10.0 + number for topic in WIDE for number in range(TOPICS[topic])}


def test_the_busiest_member_is_computed_from_the_measured_rates() -> None:
    """The five members have 30 partitions of three topics. Each number is counted again from the owners."""
    today, *_ = what_if_of(FIVE, STRATEGIES, RATES).changes[0].alternatives
    owned = [member.assigned or () for member in members(FIVE.snapshot)]
    assert today.busiest_records_per_second == max(sum(RATES[partition] for partition in held) for held in owned)
    for change in what_if_of(FIVE, STRATEGIES, RATES).changes:
        mean = sum(RATES.values()) / change.members
        assert all(mean <= (one.busiest_records_per_second or 0) <= 2 * mean for one in change.alternatives)


@pytest.mark.parametrize(
    ("rates", "why"),
    [
        (NO_RATES, "the monitor started less than a minute ago"),
        ({key: rate for key, rate in RATES.items() if key != ("orders", 0)}, "one partition has no committed offset"),
    ],
)
def test_without_the_rates_of_all_partitions_the_busiest_member_is_unknown(
    rates: Mapping[TopicPartition, float], why: str
) -> None:
    """A sum without one partition would be too low, and its member could look idle."""
    for change in what_if_of(FIVE, STRATEGIES, rates).changes:
        assert not change.has_rates, why
        assert {one.busiest_records_per_second for one in change.alternatives} == {None}, why


def what_if_text(pages: Pages, group_id: str) -> str:
    """Return the text of the what-if tables on a group's page."""
    return Seen(ask(pages, f"/groups/{group_id}").text).text.partition(" What if ")[2]


def test_page_and_api_show_the_busiest_member_of_each_strategy(tmp_path: Path) -> None:
    """Range gives 8 partitions with 10 records/s each to one member. roundrobin gives 6 to every member."""
    had = scene(tmp_path)
    pages = pages_of(had.monitor_state, had.tables)
    as_it_is = ask(pages, "/api/v1/groups/billing").json()["what_if"][0]
    found = {one["strategy"]: one["busiest_records_per_second"] for one in as_it_is["alternatives"]}
    assert found == {TODAY: 80, "range": 80, "roundrobin": 60, "sticky": 60, "cooperative-sticky": 60}
    shown = what_if_text(pages, "billing")
    assert "strategy score excess busiest moves" in shown
    assert "roundrobin 100 0 60/s" in shown


def test_rates_of_an_old_sample_are_not_used(tmp_path: Path) -> None:
    """The brokers have not answered for an hour. The assignments are still computed from the last records."""
    had = scene(tmp_path)
    pages = pages_of(had.monitor_state, had.tables, NOW_MS + 3_600_000)
    alternatives = ask(pages, "/api/v1/groups/billing").json()["what_if"][0]["alternatives"]
    assert {one["busiest_records_per_second"] for one in alternatives} == {None}
    assert "strategy score excess moves" in what_if_text(pages, "billing")
