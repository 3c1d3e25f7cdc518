"""Tests of the metrics of fairness, topic skew, what-if and verdicts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from assignors import assignor_named
from streaming.evaluation.fairness.imbalance import LAG, Imbalance
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.events import GroupEvent
from streaming.group.listing import GroupListing, ListedGroup
from streaming.group.snapshot import GroupSnapshot
from streaming.state.monitor_state import MonitorState
from streaming.state.monitor_view import WorkShares
from tests.streaming.groups import (
    current,
    emptied,
    epoch,
    formed,
    joined,
    member,
    modern_member,
    target,
    target_epoch,
    written,
)
from tests.streaming.polled.answers import answered, classic, classic_member
from tests.streaming.prometheus.test_metrics import NOW_MS, monitor_state_of, named, sample_of, scraped
from tests.streaming.situations import known

STRATEGIES = [assignor_named(name) for name in ("range", "sticky", "uniform")]
TOPICS = ("t", "u", "v")


def record(*events: GroupEvent) -> GroupState:
    """Return the group `g` after its events, with one batch per event."""
    state = GroupState(GroupSnapshot("g"))
    for event in events:
        state = apply_batch(state, [event], STRATEGIES).record
    return state


def spread(*partitions: Sequence[int]) -> GroupState:
    """Return a group with the strategy range on a topic of seven partitions. Each member has the given partitions."""
    members = [member(f"c{number}", {"orders": numbers}) for number, numbers in enumerate(partitions)]
    return record(written(5, 3, members), known(orders=7))


ONE_OF_EACH_TOPIC = [member(name, {topic: [at] for topic in TOPICS}, TOPICS) for at, name in enumerate("ab")]
SKEWED = record(written(5, 3, [*ONE_OF_EACH_TOPIC, member("c", {}, TOPICS)]), known(t=2, u=2, v=2))


@pytest.mark.parametrize(
    ("group", "excess", "idle", "avoidable", "score", "why"),
    [
        (spread([0, 1], [2, 3], [4], [5], [6]), 0, 0, 0, 100, "5 members cannot have 7 partitions more evenly"),
        (
            spread([0, 1, 2], [3], [4], [5], [6]),
            1,
            0,
            0,
            80,
            "3/1/1/1/1: the busiest member has one partition too many",
        ),
        (spread([0, 1], [2, 3], [4, 5], [6], []), 0, 1, 1, 80, "the maximum is fair, but one member is avoidably idle"),
        (
            spread(*[[number] for number in range(7)], [], []),
            0,
            2,
            0,
            100,
            "nine members and seven partitions: two members must be idle",
        ),
    ],
)
def test_an_assignment_that_cannot_be_fairer_has_no_excess(  # noqa: PLR0913, PLR0917 - a row of the table
    group: GroupState, excess: float, idle: float, avoidable: float, score: float, why: str
) -> None:
    """Engineers ignore alerts about assignments that cannot be better."""
    series = scraped(monitor_state_of([group]))
    assert named(series, "rebalance_monitor_excess_partitions") == {"group=g": excess}, why
    assert named(series, "rebalance_monitor_idle_members") == {"group=g": idle}, why
    assert named(series, "rebalance_monitor_avoidable_idle_members") == {"group=g": avoidable}, why
    assert named(series, "rebalance_monitor_imbalance_score", scope="member")["group=g,measure=partitions"] == score


def test_an_unknown_excess_has_no_series() -> None:
    """The topic's partition count is unknown. So the members' partitions are known, but the fair maximum is not."""
    series = scraped(monitor_state_of([record(written(5, 3, [member("a", {"orders": [0, 1]}), member("b")]))]))
    for name in ("excess_partitions", "avoidable_idle_members", "imbalance_score", "what_if_excess_partitions"):
        assert named(series, f"rebalance_monitor_{name}") == {}, name
    assert named(series, "rebalance_monitor_member_partitions_max") == {"group=g": 2}


def test_a_topic_skew_has_a_series_with_the_strategy_that_removes_it() -> None:
    series = scraped(monitor_state_of([SKEWED]))
    assert named(series, "rebalance_monitor_topic_skew") == {"group=g,remedy=sticky": 2}
    assert named(series, "rebalance_monitor_what_if_excess_partitions") == {
        "group=g,strategy=range": 1,
        "group=g,strategy=sticky": 0,
        "group=g,strategy=uniform": 0,
    }
    assert named(series, "rebalance_monitor_what_if_moved_partitions", strategy="sticky") == {"group=g": 2}


def test_a_group_that_cannot_be_fairer_has_no_what_if() -> None:
    series = scraped(monitor_state_of([spread([0, 1], [2, 3], [4], [5], [6])]))
    assert named(series, "rebalance_monitor_what_if_excess_partitions") == {}
    assert named(series, "rebalance_monitor_topic_skew") == {}


def with_work(group: GroupState, state: GroupState) -> MonitorState:
    """Return a monitor state with lag shares of `group`, and with `state` as the current state."""
    monitor_state = monitor_state_of([state])
    assert group.evaluation is not None
    lag = Imbalance(measure=LAG, scope="member", score=20, max_to_mean_ratio=1.8)
    unknown = Imbalance(measure="throughput", scope="member", unknown_reason="throughput_unknown")
    monitor_state.put_work({"g": WorkShares(group.evaluation.position, (lag, unknown))})
    return monitor_state


def test_lag_imbalance_is_shown_and_unknown_throughput_is_not() -> None:
    group = spread([0, 1], [2, 3], [4], [5], [6])
    series = scraped(with_work(group, group))
    assert named(series, "rebalance_monitor_imbalance_score", scope="member") == {
        "group=g,measure=partitions": 100,
        "group=g,measure=lag": 20,
    }
    assert named(series, "rebalance_monitor_work_imbalance_ratio") == {"group=g,measure=lag,scope=member": 1.8}


def test_lag_imbalance_of_an_old_assignment_is_not_shown() -> None:
    """The new assignment is measured up to half a minute later."""
    before = spread([0, 1], [2, 3], [4], [5], [6])
    after = apply_batch(before, [written(6, 4, [member("c0", {"orders": range(7)})])], STRATEGIES).record
    assert named(scraped(with_work(before, after)), "rebalance_monitor_work_imbalance_ratio") == {}


def test_lag_imbalance_of_an_old_sample_is_not_shown() -> None:
    group = spread([0, 1], [2, 3], [4], [5], [6])
    monitor_state = with_work(group, group)
    monitor_state.put_sample(sample_of(NOW_MS - 3_600_000), None)
    assert named(scraped(monitor_state), "rebalance_monitor_work_imbalance_ratio") == {}


TOPIC_SIZE = known(orders=2)
ASSIGNING = [*formed(0), TOPIC_SIZE, joined(5, "n", modern_member()), epoch(6, 4)]
RECONCILING = [*ASSIGNING, target(7, held=(("id", (0,)),)), target(8, "n", (("id", (1,)),)), target_epoch(9, 4)]
RECONCILED = [*RECONCILING, current(10, held=(("id", (0,)),), number=4), current(11, "n", (("id", (1,)),), number=4)]
POLLED_MID_REBALANCE = answered(7, classic(classic_member("a", [0]), state="PreparingRebalance"))


@pytest.mark.parametrize(
    ("events", "listed", "verdict", "why"),
    [
        (
            [written(5, 3, [member("m", {"orders": [0, 1]})]), TOPIC_SIZE],
            "Stable",
            "match",
            "the assignment equals range's",
        ),
        ([written(5, 3, [member("m", {"orders": [1]})]), TOPIC_SIZE], "Stable", "drift", "partition 0 has no owner"),
        ([written(5, 3, [member("m", {"orders": [0, 1]})])], "Stable", "unknown", "topic metadata is missing"),
        (
            [written(5, 3, [member("m", {"orders": [0, 1]})]), TOPIC_SIZE],
            "PreparingRebalance",
            "rebalancing",
            "a later listing shows the rebalance, no record does",
        ),
        ([written(5, 3, [member("m")]), emptied(6, 4)], "Empty", None, "the group has no members"),
        ([POLLED_MID_REBALANCE], "PreparingRebalance", "rebalancing", "the coordinator reports the rebalance"),
        (ASSIGNING, "Assigning", "rebalancing", "KIP-848: the coordinator computes the assignment"),
        (
            RECONCILING,
            "Reconciling",
            "match",
            "KIP-848: the targets are final, and members are reconciling",
        ),
        (RECONCILED, "Stable", "match", "KIP-848: all members are reconciled"),
    ],
)
def test_the_verdict_on_the_groups_own_strategy(
    events: Sequence[GroupEvent], listed: str, verdict: str | None, why: str
) -> None:
    monitor_state = monitor_state_of([record(*events)])
    group = ListedGroup("classic", "consumer", listed, 1)
    monitor_state.put_sample(sample_of(), monitor_state.view().lag, GroupListing(NOW_MS, {"g": group}))
    shown = named(scraped(monitor_state), "rebalance_monitor_assignment_verdict", group="g")
    assert [labels.rpartition("verdict=")[2] for labels in shown] == ([] if verdict is None else [verdict]), why
