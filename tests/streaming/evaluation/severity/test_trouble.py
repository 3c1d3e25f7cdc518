"""Whoever is on call looks at the first groups only: what stands there must be what is worst."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.severity.summary import GroupSummary, HeldCondition, Shares
from streaming.evaluation.severity.trouble import by_trouble, troubles

STORM = HeldCondition("rebalance_storm", 5, "9 rebalances in 10 minutes")
FINE = GroupSummary("g", "classic", "Stable", protocol="range", verdict="match", drift_partitions=0, lag=0, status="OK")


@pytest.mark.parametrize(
    ("changes", "expected", "why"),
    [
        ({}, [], "nothing is wrong"),
        ({"conditions": (STORM,)}, [(1, "rebalance storm")], "rule 1"),
        (
            {"conditions": (HeldCondition("x", 5, "pod-1"),)},
            [(1, "x")],
            "rule 1, whatever conditions there will be",
        ),
        (
            {"conditions": (HeldCondition("rolling_restart", 5, "2 members replaced"),)},
            [],
            "rule 1: a deployment at work",
        ),
        ({"verdict": "drift", "drift_partitions": 3}, [(2, "drift")], "rule 2"),
        (
            {"verdict": "drift", "drift_partitions": 1, "laws": ("unbalanced",)},
            [(2, "drift: unbalanced")],
            "rule 2: the law has a name",
        ),
        (
            {"verdict": "drift", "drift_partitions": 3, "laws": ("assigned_twice",), "owned_twice_partitions": 2},
            [(2, "two owners")],
            "rule 2: two owners are no harmless drift, and said once",
        ),
        (
            {"verdict": "not_evaluated", "drift_partitions": None, "not_subscribed_partitions": 2},
            [(2, "not subscribed")],
            "rule 2: a common law, whatever the strategy",
        ),
        ({"owned_twice_partitions": 0, "not_subscribed_partitions": 0}, [], "rule 2: no partition breaks one"),
        ({"verdict": "differs_from_java", "drift_partitions": None}, [], "rule 2: lawful, and proves nothing"),
        ({"unowned_partitions": 2}, [(3, "unowned")], "rule 3"),
        (
            {"unowned_partitions": 2, "conditions": (HeldCondition("unowned_partitions", 5, "2 partitions"),)},
            [(1, "unowned partitions")],
            "rule 3: the condition says it, and for how long",
        ),
        ({"unowned_partitions": None}, [], "rule 3: not known is not zero, and no trouble either"),
        ({"records_lost": 5}, [(4, "records lost")], "rule 4"),
        ({"seconds_until_lost": 3_599.0}, [(4, "losing soon")], "rule 4"),
        ({"seconds_until_lost": 3_600.0}, [], "rule 4: an hour is time enough"),
        ({"records_lost": 5, "seconds_until_lost": 1.0}, [(4, "records lost")], "rule 4 once, by what happened"),
        ({"status": "REWIND"}, [(5, "REWIND")], "rule 5"),
        ({"status": "STALL"}, [(5, "STALL")], "rule 5"),
        ({"status": "STOP"}, [(5, "STOP")], "rule 5"),
        ({"shares": Shares(idle_members=1, max_partitions=2)}, [(6, "idle")], "rule 6"),
        ({"shares": Shares(idle_members=2, max_partitions=1)}, [], "rule 6: nobody has one to spare"),
        (
            {"shares": Shares(idle_members=2, max_partitions=9, idle_in_any_assignment=2)},
            [],
            "rule 6: no assignment could employ them",
        ),
        ({"shares": Shares(excess_partitions=1)}, [(7, "uneven")], "rule 7"),
        ({"shares": Shares(excess_partitions=1, skewed_topics=3, remedy="sticky")}, [(7, "topic skew")], "rule 7"),
        ({"shares": Shares(excess_partitions=0)}, [], "rule 7: a gap that cannot be closed"),
        ({"status": "WARN", "lag_seconds": 30.0}, [(8, "WARN")], "rule 8"),
        ({"status": "WARN", "lag_seconds": 29.9}, [], "rule 8: not far behind"),
        ({"status": "WARN", "lag_seconds": None}, [(8, "WARN")], "rule 8: how far is not known, and excuses nothing"),
        ({"state": "Unknown", "not_known": ("held_back",)}, [(9, "unknown")], "rule 9"),
        ({"lag": None, "lag_unknown": ("topic_deleted",)}, [(9, "lag unknown")], "rule 9"),
        ({"lag": None}, [], "rule 9: a group that committed nothing has no lag to be known"),
        (
            {"status": "STOP", "unowned_partitions": 1, "shares": Shares(excess_partitions=4)},
            [(3, "unowned"), (5, "STOP"), (7, "uneven")],
            "the worst first",
        ),
    ],
)
def test_each_rule_says_what_is_wrong(changes: dict[str, object], expected: list[tuple[int, str]], why: str) -> None:
    found = [(trouble.rule, trouble.word) for trouble in troubles(replace(FINE, **changes))]  # type: ignore[arg-type]
    assert found == expected, why


WORST_FIRST = (
    replace(FINE, conditions=(STORM,)),
    replace(FINE, verdict="drift", drift_partitions=1, status="STOP"),
    replace(FINE, verdict="drift", drift_partitions=1, lag_seconds=9e9),
    replace(FINE, unowned_partitions=1),
    replace(FINE, records_lost=1),
    replace(FINE, status="STALL", lag_seconds=60.0),
    replace(FINE, status="STOP", lag_seconds=59.0, lag=10**9),
    replace(FINE, status="STOP", lag_seconds=59.0, lag=10),
    replace(FINE, status="STOP", lag_seconds=None, lag=10**9),
    replace(FINE, shares=Shares(idle_members=1, max_partitions=2)),
    replace(FINE, shares=Shares(excess_partitions=1)),
    replace(FINE, status="WARN", lag_seconds=30.0),
    replace(FINE, state="Unknown"),
    replace(FINE, lag_seconds=3.0),
    replace(FINE, group_id="a"),
    replace(FINE, group_id="b"),
    replace(FINE, group_id="c", lag=None),
)


@given(st.permutations(WORST_FIRST))
def test_groups_stand_by_their_worst_trouble_then_their_number_then_lag_then_name(groups: list[GroupSummary]) -> None:
    assert [group for group, _ in by_trouble(groups)] == list(WORST_FIRST)


@given(st.permutations(WORST_FIRST), st.sampled_from(WORST_FIRST))
def test_one_trouble_more_never_puts_a_group_further_down(groups: list[GroupSummary], group: GroupSummary) -> None:
    worse = replace(group, unowned_partitions=7)
    before = [one for one, _ in by_trouble(groups)].index(group)
    changed = [worse if one is group else one for one in groups]
    assert [one for one, _ in by_trouble(changed)].index(worse) <= before


def test_words_name_who_since_when_and_the_remedy() -> None:
    (storm,) = troubles(replace(FINE, conditions=(STORM,)))
    assert (storm.text, storm.since_ms) == ("rebalance storm: 9 rebalances in 10 minutes", 5)
    (skew,) = troubles(replace(FINE, shares=Shares(excess_partitions=2, skewed_topics=3, remedy="sticky")))
    assert skew.text == (
        "the busiest member has 2 partitions more than need be: "
        "the same members have the one more of 3 topics; sticky would end that"
    )


def test_a_trouble_says_how_many_records_wait_in_partitions_without_an_owner() -> None:
    """A partition without an owner is harm only if records wait in it."""
    (found,) = troubles(replace(FINE, unowned_partitions=2, unowned_records=1_200))
    assert found.text == "2 partitions without an owner, where 1,200 records wait"


def test_a_broken_law_is_named_in_plain_words() -> None:
    """Two owners looked like harmless drift: "2 partitions are not where range puts them"."""
    texts = [
        trouble.text
        for trouble in troubles(
            replace(
                FINE,
                verdict="drift",
                drift_partitions=2,
                laws=("assigned_twice", "member_missing"),
                owned_twice_partitions=1,
            )
        )
    ]
    assert texts == [
        "1 partition with two owners, which both process the records",
        "a member has no assignment: 2 partitions are not where range puts them",
    ]
