"""Tests of the rank of groups. An on-call engineer reads only the first groups, so these must be the worst."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.assignment.drift import StrategyDrift
from streaming.evaluation.causes.cause import Cause
from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.evaluation.facts import NO_LEADER, AssignmentReport, FairnessReport, GroupLag, Membership
from streaming.evaluation.fairness.imbalance import PARTITIONS, THROUGHPUT, Imbalance
from streaming.evaluation.fairness.participants import MEMBER
from streaming.evaluation.report import GroupReport

BLOCKED = Cause("unknown", "open_transaction")
STORM = Condition("rebalance_storm", 5, "9 rebalances in 10 minutes")


def group(group_id: str = "g", **facts: object) -> GroupReport:
    """Return a group whose only problems are the given facts. Each fact has the name of its report field."""
    left = {"state": "Stable", "verdict": "match", "drift_partitions": 0, "records": 0, "status": "OK", **facts}

    def given(names: str) -> dict[str, Any]:
        return {name: left.pop(name) for name in names.split() if name in left}

    own = msgspec.structs.replace(StrategyDrift("range", True, "match"), **given("verdict drift_partitions violations"))
    violation_counts = given("owned_twice_partitions not_subscribed_partitions unowned_partitions")
    shares = Imbalance(measure=PARTITIONS, scope=MEMBER, **given("idle largest idle_in_any_assignment excess"))
    waiting = given("unowned_records")
    largest, excess = given("work").get("work", (None, None))
    throughput = Imbalance(measure=THROUGHPUT, scope=MEMBER, largest=largest, excess=excess)
    report = GroupReport(
        group_id,
        Membership(left.pop("group_type", "classic"), protocol="range", **given("state coordinator members")),  # type: ignore[arg-type]
        AssignmentReport((own,), **violation_counts),
        FairnessReport((shares, throughput), **given("skewed_topics remedy")),
        lag=GroupLag(
            **given("records unknown seconds status records_lost seconds_until_lost seconds_until_expiry"),
            **given("blocked_partitions"),
        ),
        **waiting,
        **given("conditions not_known cause"),
    )
    assert not left, "every fact was used"
    return report


@pytest.mark.parametrize(
    ("changes", "expected", "why"),
    [
        ({}, [], "nothing is wrong"),
        ({"coordinator": NO_LEADER, "members": 2}, [(1, "no coordinator")], "rule 1: no member can commit"),
        ({"coordinator": NO_LEADER, "members": 0}, [], "rule 1: nobody commits"),
        ({"coordinator": 0}, [], "rule 1: broker 0 is a normal broker"),
        ({"conditions": (STORM,)}, [(1, "rebalance storm")], "rule 1"),
        (
            {"conditions": (Condition("x", 5, "pod-1"),)},
            [(1, "x")],
            "rule 1 applies to every condition, also to future ones",
        ),
        (
            {"conditions": (Condition("rolling_restart", 5, "2 members replaced"),)},
            [],
            "rule 1: a deployment is in progress",
        ),
        (
            {"conditions": (Condition("subscription_mismatch", 5, "members have subscribed to 2 sets of topics"),)},
            [],
            "rule 1: different subscriptions are harmless and can last for months",
        ),
        ({"verdict": "drift", "drift_partitions": 3}, [(2, "drift")], "rule 2"),
        (
            {"verdict": "drift", "drift_partitions": 1, "violations": ("unbalanced",)},
            [(2, "drift: unbalanced")],
            "rule 2: the broken rule is named",
        ),
        (
            {"verdict": "drift", "drift_partitions": 3, "violations": ("assigned_twice",), "owned_twice_partitions": 2},
            [(2, "two owners")],
            "rule 2: two owners are not harmless drift, and are reported once",
        ),
        (
            {"verdict": "not_evaluated", "drift_partitions": None, "not_subscribed_partitions": 2},
            [(2, "not subscribed")],
            "rule 2: a common rule, under every strategy",
        ),
        ({"owned_twice_partitions": 0, "not_subscribed_partitions": 0}, [], "rule 2: no partition breaks the rule"),
        (
            {"verdict": "differs_from_java", "drift_partitions": None},
            [],
            "rule 2: a valid assignment that differs from the replay proves nothing",
        ),
        ({"unowned_partitions": 2}, [(3, "unowned")], "rule 3"),
        (
            {"unowned_partitions": 2, "conditions": (Condition("unowned_partitions", 5, "2 partitions"),)},
            [(1, "unowned partitions")],
            "rule 3: the condition describes it, with its duration",
        ),
        ({"unowned_partitions": None}, [], "rule 3: unknown is not zero, and not a trouble"),
        ({"records_lost": 5}, [(4, "records lost")], "rule 4"),
        ({"seconds_until_lost": 3_599.0}, [(4, "losing soon")], "rule 4"),
        ({"seconds_until_lost": 3_600.0}, [], "rule 4: an hour is enough time"),
        (
            {"records_lost": 5, "seconds_until_lost": 1.0},
            [(4, "records lost")],
            "rule 4 is reported once, for the loss that happened",
        ),
        ({"seconds_until_expiry": 86_399.0}, [(4, "offsets expire")], "rule 4"),
        ({"seconds_until_expiry": 0.0}, [(4, "offsets expire")], "rule 4: the broker checks every ten minutes"),
        ({"seconds_until_expiry": 86_400.0}, [], "rule 4: a day is enough time"),
        ({"status": "REWIND"}, [(5, "rewound")], "rule 5"),
        ({"status": "STALL"}, [(5, "stalled")], "rule 5"),
        ({"status": "STOP"}, [(5, "stopped")], "rule 5"),
        (
            {"status": "STOP", "members": 0},
            [(5, "no members")],
            "rule 5: the section of the runbook is a different one",
        ),
        ({"idle": 1, "largest": 2}, [(6, "idle")], "rule 6"),
        ({"idle": 2, "largest": 1}, [], "rule 6: no member has a partition to spare"),
        (
            {"idle": 2, "largest": 9, "idle_in_any_assignment": 2},
            [],
            "rule 6: no assignment could give them partitions",
        ),
        ({"excess": 1}, [(7, "uneven")], "rule 7"),
        ({"excess": 1, "skewed_topics": 3, "remedy": "sticky"}, [(7, "topic skew")], "rule 7"),
        ({"excess": 0}, [], "rule 7: a difference that cannot be avoided"),
        ({"work": (800, 390)}, [(8, "uneven work")], "rule 8: two partitions with 400 records/s, two with 10"),
        ({"work": (900, 0)}, [], "rule 8: a hot partition, which no assignment can divide"),
        ({"work": (30, 10)}, [(8, "uneven work")], "rule 8: 30 instead of 20 is one and a half times as much"),
        ({"work": (29.9, 9.9)}, [], "rule 8: less than 10 records/s more"),
        ({"work": (400, 100)}, [], "rule 8: 400 instead of 300 is a common difference"),
        ({"work": (800, None)}, [], "rule 8: the fairest assignment is unknown"),
        ({"work": (None, None)}, [], "rule 8: the rate of a partition is unknown"),
        ({"status": "WARN", "seconds": 30.0}, [(9, "too slow")], "rule 9"),
        ({"status": "WARN", "seconds": 29.9}, [], "rule 9: the lag is small"),
        ({"status": "WARN", "seconds": None}, [(9, "too slow")], "rule 9: an unknown lag does not remove the trouble"),
        (
            {"cause": BLOCKED, "status": None, "seconds": 685.0, "blocked_partitions": 1},
            [(9, "open transaction")],
            "rule 9: with 685 s of lag, the group was one of the healthy groups",
        ),
        (
            {"cause": BLOCKED, "status": "WARN", "seconds": 685.0, "blocked_partitions": 1},
            [(9, "open transaction")],
            "rule 9: WARN is the status of a partition with 2 s of lag, and the 685 s belong to the blocked partition",
        ),
        (
            {"cause": BLOCKED, "status": None, "seconds": 285.0, "blocked_partitions": 1},
            [],
            "rule 9: transactions of some minutes are normal, for example with producers of Flink",
        ),
        (
            {"status": "WARN", "seconds": 40.0, "blocked_partitions": 1},
            [],
            "rule 9: no partition is late yet, so the 40 s can belong to the blocked partition",
        ),
        (
            {"cause": Cause("under_provisioned"), "status": "WARN", "seconds": 40.0, "blocked_partitions": 1},
            [(9, "too slow")],
            "rule 9: a partition that is not blocked is late",
        ),
        ({"state": "Unknown", "not_known": ("blocked",)}, [(10, "unknown")], "rule 10"),
        (
            {"group_type": "streams", "state": "Unknown", "members": 2},
            [],
            "rule 10: no record contains the state of a streams group, so the group can be healthy",
        ),
        (
            {"group_type": "streams", "state": "Unknown", "members": None, "not_known": ("member_metadata",)},
            [(10, "unknown")],
            "rule 10: a record of the streams group is missing",
        ),
        (
            {"group_type": "streams", "state": "Unknown", "members": 2, "records": None, "unknown": ("no_end_offset",)},
            [(10, "lag unknown")],
            "rule 10: the lag of the streams group is unknown",
        ),
        ({"records": None, "unknown": ("topic_deleted",)}, [(10, "lag unknown")], "rule 10"),
        ({"records": None, "unknown": ("no_fresh_sample",)}, [(10, "unknown")], "rule 10: conditions are unknown too"),
        ({"records": None, "unknown": ("log_not_read",)}, [(10, "lag unknown")], "rule 10: conditions are still known"),
        ({"records": None}, [], "rule 10: a group without commits has no lag"),
        (
            {"status": "STOP", "unowned_partitions": 1, "excess": 4},
            [(3, "unowned"), (5, "stopped"), (7, "uneven")],
            "the worst first",
        ),
    ],
)
def test_the_trouble_of_each_rule(changes: dict[str, object], expected: list[tuple[int, str]], why: str) -> None:
    found = [(trouble.rule, trouble.word) for trouble in group(**changes).troubles]  # type: ignore[arg-type]
    assert found == expected, why


WORST_FIRST = (
    group(conditions=(STORM,)),
    group(verdict="drift", drift_partitions=1, status="STOP"),
    group(verdict="drift", drift_partitions=1, seconds=9e9),
    group(unowned_partitions=1),
    group(records_lost=1),
    group(status="STALL", seconds=60.0),
    group(status="STOP", seconds=59.0, records=10**9),
    group(status="STOP", seconds=59.0, records=10),
    group(status="STOP", seconds=None, records=10**9),
    group(idle=1, largest=2),
    group(excess=1),
    group(work=(800, 390)),
    group(status="WARN", seconds=30.0),
    group(state="Unknown"),
    group(seconds=3.0),
    group("a"),
    group("b"),
    group("c", records=None),
)


@given(st.permutations(WORST_FIRST))
def test_groups_are_ranked_by_worst_trouble_then_number_of_troubles_then_lag_then_name(
    groups: list[GroupReport],
) -> None:
    assert sorted(groups, key=attrgetter("place")) == list(WORST_FIRST)


@given(st.permutations(WORST_FIRST), st.sampled_from(WORST_FIRST))
def test_an_additional_trouble_never_ranks_a_group_lower(groups: list[GroupReport], one: GroupReport) -> None:
    assignment = replace(one.assignment, unowned_partitions=7)
    worse = msgspec.structs.replace(one, assignment=assignment)
    before = sorted(groups, key=attrgetter("place")).index(one)
    changed = [worse if each is one else each for each in groups]
    assert sorted(changed, key=attrgetter("place")).index(worse) <= before


def test_texts_name_the_member_the_start_time_and_the_remedy() -> None:
    (storm,) = group(conditions=(STORM,)).troubles
    assert (storm.text, storm.since_ms) == ("rebalance storm: 9 rebalances in 10 minutes", 5)
    (skew,) = group(excess=2, skewed_topics=3, remedy="sticky").troubles
    assert skew.text == (
        "the busiest member has 2 partitions more than necessary: "
        "some members have one extra partition in each of 3 topics; the strategy sticky would prevent this"
    )


def test_a_trouble_shows_how_many_records_wait_in_partitions_without_an_owner() -> None:
    """A partition without an owner is harmful only if records wait in it."""
    (found,) = group(unowned_partitions=2, unowned_records=1_200).troubles
    assert found.text == "2 partitions without an owner, where 1,200 records wait"


def test_uneven_work_names_both_rates() -> None:
    """Counts are equal and nothing else is wrong, so only the rates show that one member does most of the work."""
    (found,) = group(work=(800, 390)).troubles
    assert found.text == (
        "the partitions of the busiest member receive 800 records/s; in the fairest assignment, the busiest member"
        " would receive 410 records/s"
    )


def test_the_status_of_one_partition_is_not_reported_for_the_whole_group() -> None:
    """For 70 s, a group "no longer commits". But its last commit was 1 s old, and its lag decreased."""
    texts = [trouble.text for one in ("STOP", "STALL", "REWIND") for trouble in group(status=one).troubles]
    assert texts == [
        "stopped: a partition no longer gets commits, and records wait (STOP)",
        "stalled: a partition gets the same committed offset again and again (STALL)",
        "rewound: the committed offset of a partition decreased (REWIND)",
    ]


def test_a_broken_rule_is_named_in_plain_words() -> None:
    """Before, two owners looked like harmless drift: "2 partitions are not assigned as range requires"."""
    texts = [
        trouble.text
        for trouble in (
            group(
                verdict="drift",
                drift_partitions=2,
                violations=("assigned_twice", "member_missing"),
                owned_twice_partitions=1,
            ).troubles
        )
    ]
    assert texts == [
        "1 partition with two owners, which both process the records",
        "a member has no assignment: 2 partitions are not assigned as range requires",
    ]
