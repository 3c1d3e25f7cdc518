"""Tests of rule 10 of `advance`: coordinators' answers, and which counts they allow."""

from __future__ import annotations

import pytest

from streaming.events import GroupTombstoned, Position, decode_event, encode_event
from streaming.group.advance import advance
from streaming.group.history import is_reportable
from streaming.group.listing import DescribedGroup
from streaming.group.not_known import not_known
from streaming.group.snapshot import GroupSnapshot, GroupTotals, Resume
from tests.streaming.polled.answers import answered, classic, classic_member, modern, modern_member

ALONE = classic(classic_member("a", [0, 1]))
SHARED = classic(classic_member("a", [0]), classic_member("b", [1]))
OTHER_CLAIM = bytes.fromhex("0001 00000001 0001 74 ffffffff 00000001 0001 74 00000001 00000000")
REJOINING = classic(classic_member("a"), state="PreparingRebalance")
EMPTY = classic()
STATIC = classic(classic_member("a-1", [0], instance_id="a"), classic_member("b-1", [1], instance_id="b"))
STATIC_AGAIN = classic(
    classic_member("a-2", [0], instance_id="a", subscription=OTHER_CLAIM), classic_member("b-1", [1], instance_id="b")
)


def after(*groups: DescribedGroup) -> GroupSnapshot:
    """Return the snapshot after these consecutive answers."""
    snapshot = GroupSnapshot("g")
    for number, group in enumerate(groups):
        snapshot = advance(snapshot, answered(number, group))
    return snapshot


@pytest.mark.parametrize(
    ("answers", "rebalances", "empty_transitions", "why"),
    [
        ([ALONE], 0, 0, "events before the first answer are unknown"),
        ([ALONE, ALONE], 0, 0, "the same answer again"),
        ([ALONE, SHARED], 1, 0, "a member joined"),
        (
            [SHARED, classic(classic_member("a", [1]), classic_member("b", [0]))],
            1,
            0,
            "the same members with exchanged partitions",
        ),
        ([ALONE, classic(classic_member("a", [0, 1], subscription=OTHER_CLAIM))], 1, 0, "joined again with a claim"),
        ([ALONE, REJOINING], 0, 0, "the rebalance has not ended yet"),
        ([ALONE, REJOINING, ALONE], 1, 0, "a rebalance was seen, and it ended without a change"),
        ([ALONE, REJOINING, REJOINING, SHARED], 1, 0, "a long rebalance"),
        ([REJOINING, ALONE], 1, 0, "the first answer came during a rebalance"),
        ([ALONE, EMPTY], 0, 1, "the last member left"),
        ([ALONE, REJOINING, EMPTY], 0, 1, "the rebalance waited for the last member, which did not return"),
        ([EMPTY, ALONE], 1, 0, "the first member joined"),
        ([STATIC, STATIC_AGAIN], 0, 0, "a static member rejoins in the same generation (KIP-345)"),
    ],
)
def test_a_classic_group_counts_the_observed_changes(
    answers: list[DescribedGroup], rebalances: int, empty_transitions: int, why: str
):
    """DescribeGroups returns no generation, so the count is a lower bound."""
    snapshot = after(*answers)
    assert snapshot.totals == GroupTotals(rebalances=rebalances, empty_transitions=empty_transitions), why
    assert snapshot.generation_id is None
    assert "generation_id" in not_known(snapshot)


@pytest.mark.parametrize(
    ("epochs", "rebalances", "incarnations", "why"),
    [
        ((3,), 0, 1, "the first answer counts nothing"),
        ((3, 7), 1, 1, "the answer does not show whether the epochs 4 to 6 had assignments"),
        ((7, 2), 0, 2, "a lower epoch means a recreated group"),
    ],
)
def test_a_kip_848_group_counts_its_new_assignments(
    epochs: tuple[int, ...], rebalances: int, incarnations: int, why: str
):
    """Rule 4 applies to answers as to records."""
    groups = [modern(epoch, modern_member("a", [0], epoch=epoch, target=[0])) for epoch in epochs]
    snapshot = after(*groups)
    assert snapshot.totals == GroupTotals(rebalances=rebalances, incarnations=incarnations), why
    assert snapshot.generation_id == epochs[-1]
    assert "generation_id" not in not_known(snapshot)
    assert snapshot.protocol == "uniform"


def test_the_strategy_of_a_polled_group_comes_from_the_broker():
    assert (after(ALONE).protocol, after(ALONE).protocol_source) == ("range", "broker")
    assert (after(modern(3)).protocol, after(modern(3)).protocol_source) == ("uniform", "broker")
    assert (after(REJOINING).protocol, after(REJOINING).protocol_source) == (None, None)


def test_an_answer_without_news_changes_nothing():
    """The poller sends only news, as defined by `advance`. A fact that is sent twice counts once."""
    for group in (ALONE, EMPTY, modern(3, modern_member("a", [0], epoch=3, target=[0]))):
        snapshot = after(group)
        assert advance(snapshot, answered(5, group)) is snapshot


def test_a_rebalancing_group_keeps_its_state_and_topics_but_no_assignment():
    """During a rebalance, a coordinator returns members without subscriptions and assignments."""
    snapshot = after(ALONE, REJOINING)
    assert (snapshot.state, snapshot.member_count()) == ("PreparingRebalance", 1)
    assert snapshot.classic is not None
    assert snapshot.classic.members[0].assignment is None


def test_a_group_described_with_a_different_type_was_upgraded_and_continues():
    """KIP-848's live upgrade keeps the group. A deletion in between would be invisible, so it is not counted."""
    snapshot = after(ALONE, SHARED, modern(5, modern_member("a", [0], epoch=5, target=[0])))
    assert (snapshot.group_type, snapshot.generation_id) == ("consumer", 5)
    assert snapshot.totals == GroupTotals(rebalances=1)


def test_a_group_that_returns_after_its_end_is_a_new_group():
    dead = advance(after(ALONE), GroupTombstoned(Position(-1, 5, 0)))
    again = advance(dead, answered(6, ALONE))
    assert (again.state, again.totals.incarnations) == ("Stable", 2)


def test_a_new_checkpoint_continues_the_counts_of_a_polled_group_from_the_tables():
    """Rule 3: `rebuild` keeps totals."""
    resume = Resume(4, "consumer", "Stable", 3, GroupTotals(rebalances=9))
    seeded = GroupSnapshot("g", totals=resume.totals, resume=resume)
    snapshot = advance(seeded, answered(5, modern(4, modern_member("a", [0], epoch=4, target=[0]))))
    assert snapshot.totals == GroupTotals(rebalances=10)


def test_moves_to_a_target_do_not_give_a_row_per_poll():
    """A large group moves for minutes. Every row would be the same."""
    moving = modern(3, modern_member("a", [], epoch=2, target=[0]), state="Reconciling")
    further = modern(3, modern_member("a", [], epoch=3, target=[0]), state="Reconciling")
    there = modern(3, modern_member("a", [0], epoch=3, target=[0]))
    first = GroupSnapshot("g")
    reported = []
    for number, group in enumerate((moving, further, there)):
        event = answered(number, group)
        second = advance(first, event)
        assert second.position == event.position
        reported.append(is_reportable(first, event, second))
        first = second
    assert reported == [True, False, True]


def test_an_answer_survives_its_encoding():
    for group in (SHARED, REJOINING, modern(3, modern_member("a", [0], epoch=3, target=[1]))):
        event = answered(1, group)
        assert decode_event(encode_event(event)) == event
