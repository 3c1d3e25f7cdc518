"""The cause of lag, by the numbered rules of `cause_of_lag.py`. Each row of the table has the reason for its result."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.causes.cause import NO_MEMBERS, NO_OWNER, OPEN_TRANSACTION, Cause, Kind
from streaming.evaluation.causes.cause_of_lag import LagFacts, cause_of_lag
from streaming.evaluation.causes.member_work import group_work
from streaming.signals.lag import GROUP_LAG_CAUSE_INFO
from tests.streaming.evaluation.causes.late_groups import (
    OTHER_MS,
    Flow,
    Owner,
    facts,
    group_member,
    in_time,
    late,
    stuck,
)

CALM = (Owner("a", (in_time(100),)), Owner("b", (in_time(100),)))
OVERLOADED = (Owner("a", (late(100, 80),)), Owner("b", (late(100, 80),)))
STUCK = (Owner("a", (stuck(),)), Owner("b", (stuck("STALL"),)))
HOT = (Owner("a", (late(900, 300),), capacity=300.0), Owner("b", (in_time(10),)), Owner("c", (in_time(10),)))
UNEVEN = (Owner("a", (late(205, 150), late(205, 150)), capacity=300.0), Owner("b", (in_time(10), in_time(10))))
BLOCKED_AND_IN_TIME = (late(205, 0, is_blocked=True), in_time(205))
BUSY = Owner("b", (late(190, 20),))


def slow(produced: float = 100, consumed: float = 20) -> Owner:
    """Return a late member. The others have an input of 100."""
    return Owner("slow", (late(produced, consumed),))


@pytest.mark.parametrize(
    ("group", "expected", "why"),
    [
        (facts(*CALM), None, "no partition is late"),
        (facts(*CALM, lost_ms=300_000, rebalances=9), None, "rebalances without lag are a condition, not a cause"),
        (facts(*STUCK, lost_ms=0), "stopped", "rule 3: statuses STOP and STALL"),
        (
            facts(Owner("a", (late(100, 50, is_blocked=True),)), *CALM),
            "unknown: open_transaction",
            "rule 1: no consumer with read_committed can read on",
        ),
        (
            facts(Owner("a", (late(100, 50, is_blocked=True), late(100, 80))), Owner("b", (late(100, 80),))),
            "under_provisioned",
            "rule 1: the partitions without an open transaction lag, too",
        ),
        (
            facts(Owner("m0", (late(10, 0, is_blocked=True),)), Owner("m1", (late(10, 5),))),
            "unknown: no_rule",
            "rule 9: only a transaction delays m0, so it is unknown whether the input is too much for it",
        ),
        (
            facts(Owner("a", (late(100, 0, is_blocked=True), late(100, 100))), Owner("b", (late(100, 80),))),
            "unknown: no_rule",
            "rule 9: without its blocked partition, member a keeps up",
        ),
        (
            facts(UNEVEN[0]._replace(flows=BLOCKED_AND_IN_TIME), BUSY, fair_records_per_second=215.0),
            "slow_member",
            "rule 7: only a transaction delays the member with more input than its capacity",
        ),
        (facts(*OVERLOADED, lost_ms=150_000), "rebalancing", "rule 2: half of the window is lost"),
        (
            facts(*OVERLOADED, without_members_ms=60_000),
            "unknown: rates_unknown",
            "rule 5: a fifth of the rates' window is time without members",
        ),
        (facts(*OVERLOADED, without_members_ms=59_999), "under_provisioned", "rule 5: a restart of an application"),
        (facts(*OVERLOADED, lost_ms=60_000), "rebalancing", "rule 2: 80 / 0.8 is 100, so the group would keep up"),
        (facts(*OVERLOADED, lost_ms=59_000), "under_provisioned", "rule 2: less than a fifth of the window is lost"),
        (
            facts(Owner("a", (late(100, 79),)), Owner("b", (late(100, 79),)), lost_ms=60_000),
            "under_provisioned",
            "rule 2: the group would not keep up without rebalances either",
        ),
        (
            facts(Owner("a", (late(None, None),)), lost_ms=60_000),
            "unknown: rates_unknown",
            "rule 2: a fifth of the window explains nothing if the rates are unknown",
        ),
        (facts(*STUCK, lost_ms=150_000), "rebalancing", "rule 2 before rule 3: a group in a rebalance cannot commit"),
        (facts(*STUCK, rebalances=3), "rebalancing", "rule 2: each rebalance ends before a member commits"),
        (facts(*STUCK, rebalances=2), "stopped", "rule 2: two rebalances are a deployment"),
        (facts(*OVERLOADED, rebalances=3), "under_provisioned", "rule 2: the group commits between its rebalances"),
        (
            facts(*OVERLOADED, lost_ms=0, window_ms=0),
            "under_provisioned",
            "rule 2: a window without duration shows no rebalance",
        ),
        (facts(unowned=(stuck(),)), "stopped: no_members", "rule 3: the last member has left"),
        (
            facts(unowned=(late(100, 50),)),
            "unknown: owners_unknown",
            "rule 3: Flink and Spark commit without members",
        ),
        (facts(unowned=(stuck(),), are_owners_known=False), "stopped: no_members", "rule 3: assign() client is down"),
        (facts(unowned=(stuck("STALL"),), are_owners_known=False), "stopped", "rule 3: somebody still commits"),
        (
            facts(unowned=(late(100, 50, last_commit_ms=OTHER_MS),), are_owners_known=False),
            "unknown: owners_unknown",
            "rule 3: Flink commits every few minutes",
        ),
        (facts(*CALM, unowned=(stuck(),)), "stopped: no_owner", "rule 3: the assignment leaves out a partition"),
        (
            facts(Owner("a", (stuck(),)), Owner("b", (in_time(0)._replace(last_commit_ms=OTHER_MS),))),
            "stopped",
            "rule 3: the other member has nothing to read",
        ),
        (
            facts(Owner("a", (stuck(),)), Owner("b", (in_time(100),))),
            "slow_member",
            "rule 3: the other member commits, so only one member hangs",
        ),
        (
            facts(Owner("a", (stuck(),)), Owner("b", (late(100, 80),))),
            "under_provisioned",
            "rule 3: one late partition still makes progress",
        ),
        (
            facts(*OVERLOADED, are_owners_known=False),
            "unknown: owners_unknown",
            "rule 4: the assignment of a member is unknown",
        ),
        (
            facts(Owner("a", (late(100, None),)), Owner("b", (late(100, 80),))),
            "unknown: rates_unknown",
            "rule 4: the committed offset went back a moment ago",
        ),
        (
            facts(Owner("a", (late(100, 80), Flow(None, None))), Owner("b", (late(100, 80),))),
            "unknown: rates_unknown",
            "rule 4: a member with an unknown rate cannot be compared",
        ),
        (facts(Owner("a", (late(100, 110),))), "unknown: catching_up", "rule 5: the lag shrinks"),
        (
            facts(Owner("a", (late(100, 60, speed=1.5),))),
            "unknown: catching_up",
            "rule 5: the lag shrinks since a hang ended, and the average rate contains the hang",
        ),
        (
            facts(Owner("a", (late(100, 110, speed=0.8),))),
            "unknown: no_rule",
            "rule 5: the lag of a new problem grows, although the group caught up before",
        ),
        (facts(Owner("a", (late(100, 102),))), "unknown: no_rule", "rule 5: two percent may be an error of the rates"),
        (facts(*HOT), "hot_partition", "rule 6: 900 records/s for a member that can consume 300"),
        (
            facts(HOT[0]._replace(capacity=None), *HOT[1:]),
            "unknown: no_rule",
            "rule 6: a partition is not called hot while the capacity of its owner is unknown",
        ),
        (
            facts(Owner("a", (late(900, 890),), capacity=900.0), *HOT[1:]),
            "unknown: no_rule",
            "rule 6: the owner can consume as much as producers write",
        ),
        (
            facts(Owner("a", (late(100, 20),), capacity=20.0), Owner("b", (in_time(40),) * 4)),
            "slow_member",
            "rule 6: another member consumes 160 records/s, so the partition is not too hot for a member",
        ),
        (
            facts(*(Owner(name, (late(100, 50),), capacity=50.0) for name in "abc")),
            "under_provisioned",
            "rule 6: no partition is hotter than the others",
        ),
        (
            facts(Owner("a", (late(100, 50),), capacity=50.0)),
            "under_provisioned",
            "rule 6: a topic with one partition has nothing to compare",
        ),
        (
            facts(Owner("a", (late(900, 300), in_time(10)), capacity=310.0), Owner("b", (in_time(10),))),
            "hot_partition",
            "rule 6 before rule 7: the member would be overloaded without its cold partition, too",
        ),
        (facts(*UNEVEN, fair_records_per_second=215.0), "assignment", "rule 7: 410 records/s fall to 215"),
        (
            facts(*UNEVEN, fair_records_per_second=300.0),
            "unknown: no_rule",
            "rule 7: the fairest assignment would need the full capacity",
        ),
        (facts(*UNEVEN), "unknown: no_rule", "rule 7: the fairest assignment is unknown"),
        (
            facts(UNEVEN[0], UNEVEN[1]._replace(capacity=100.0), fair_records_per_second=215.0),
            "unknown: no_rule",
            "rule 7: the other member could not consume 215 records/s",
        ),
        (
            facts(UNEVEN[0]._replace(capacity=None), UNEVEN[1], fair_records_per_second=215.0),
            "unknown: no_rule",
            "rule 7: the capacity of the busiest member is unknown",
        ),
        (facts(slow(), *CALM), "slow_member", "rule 8: equal input, a fifth of the progress"),
        (
            facts(slow(), *CALM, unowned=(late(100, 0),)),
            "unknown: no_rule",
            "rule 8: a partition without an owner lags, too, and no member is the reason",
        ),
        (
            facts(slow(), *CALM, Owner("d", (late(0, 0),))),
            "unknown: no_rule",
            "rule 8: a partition of a member without input lags, too",
        ),
        (facts(slow(150), *CALM), "slow_member", "rule 8: one and a half times the input is similar"),
        (facts(slow(151), *CALM), "unknown: no_rule", "rule 8: more input, so the member may be as fast as the others"),
        (facts(slow(100, 89), *CALM), "slow_member", "rule 8: below nine tenths"),
        (facts(slow(100, 90), *CALM), "unknown: no_rule", "rule 8: the difference may be an error of the rates"),
        (facts(slow(50, 50), *CALM), "unknown: no_rule", "rule 8: the member consumes what it receives"),
        (
            facts(*(Owner(name, (late(100, 20),), "/bad") for name in "xy"), *CALM),
            "slow_host",
            "rule 8: all members on one host",
        ),
        (
            facts(Owner("x", (late(100, 20),), "/bad"), Owner("y", (in_time(100),), "/bad"), *CALM),
            "slow_member",
            "rule 8: a different member on the same host keeps up",
        ),
        (
            facts(Owner("x", (late(100, 20),), "/bad"), Owner("y", (late(100, 20),), "/bad2"), *CALM),
            "unknown: no_rule",
            "rule 8: two members on two hosts have no common property",
        ),
        (
            facts(
                *(Owner(name, (late(100, 20),), "/bad") for name in "xy"),
                Owner("z", (in_time(100),), "/bad"),
                *CALM,
            ),
            "unknown: no_rule",
            "rule 8: one member on the host keeps up, so the host is not the cause",
        ),
        (
            facts(*(Owner(name, (late(100, 20),), "/bad") for name in "xy"), Owner("idle", (), "/bad"), *CALM),
            "slow_host",
            "rule 8: an idle member on the host proves nothing",
        ),
        (facts(*OVERLOADED), "under_provisioned", "rule 9: the lag of each member grows"),
        (
            facts(*OVERLOADED, Owner("idle", ())),
            "under_provisioned",
            "rule 9: more members do not help without more partitions, but the input is too much",
        ),
        (
            facts(*OVERLOADED, Owner("c", (late(100, 100),))),
            "unknown: no_rule",
            "rule 9: the lag of one member does not grow",
        ),
        (facts(Owner("a", (late(100, 99),))), "under_provisioned", "rule 9: a group with one member"),
    ],
)
def test_the_first_rule_that_applies_names_the_cause(group: LagFacts, expected: str | None, why: str) -> None:
    cause = cause_of_lag(group)
    named = cause and (f"{cause.kind}: {cause.reason}" if cause.reason not in {"", "no_commits"} else cause.kind)
    assert named == expected, why


@pytest.mark.parametrize("busy_partitions", [1, 3])
def test_a_quiet_topic_does_not_make_a_partition_of_a_busy_topic_hot(busy_partitions: int) -> None:
    """Each partition of `orders` received 1,000 records per second, and each partition of `refunds` received ten.

    The cause was "Hot partition", and the advice was to look at the keys. The keys of both topics are even.
    """
    owners = [Owner(name, (late(1000, 800), late(10, 8)), capacity=808.0) for name in "abc"[:busy_partitions]]
    group = facts(*owners)
    topics = [
        one._replace(topic="orders" if number % 2 == 0 else "refunds") for number, one in enumerate(group.partitions)
    ]
    assert (cause_of_lag(replace(group, partitions=tuple(topics))) or Cause("none")).kind == "under_provisioned"


FLOWS = st.builds(
    Flow,
    st.one_of(st.none(), st.sampled_from([0.0, 10.0, 100.0, 900.0])),
    st.one_of(st.none(), st.sampled_from([0.0, 10.0, 50.0, 100.0])),
    st.booleans(),
    st.sampled_from(["OK", "STOP", "STALL", None]),
    st.sampled_from([OTHER_MS, OTHER_MS + 119_000]),
    st.booleans(),
)
CAPACITIES = st.one_of(st.none(), st.sampled_from([20.0, 300.0]))
OWNERS = st.lists(
    st.tuples(st.lists(FLOWS, max_size=3).map(tuple), st.sampled_from(["/h1", "/h2"]), CAPACITIES), max_size=4
).map(lambda owners: [Owner(name, *owner) for name, owner in zip("abcd", owners, strict=False)])


def shuffled(group: LagFacts, order: st.DataObject) -> LagFacts:
    """Return the same facts with members and partitions in a different order."""
    assert group.work is not None
    members = [
        group_member(
            one.name, one.client_host, tuple(each.key for each in group.partitions if each.member_id == one.member_id)
        )
        for one in group.work.members
    ]
    capacities = {one.member_id: one.capacity_records_per_second for one in group.work.members}
    known = {member_id: capacity for member_id, capacity in capacities.items() if capacity is not None}
    partitions = tuple(order.draw(st.permutations(group.partitions)))
    work = group_work(order.draw(st.permutations(members)), partitions, capacities=known)
    return replace(group, partitions=partitions, work=work)


@given(OWNERS, st.lists(FLOWS, max_size=2).map(tuple), st.sampled_from([0, 60_000, 200_000]), st.integers(0, 4))
def test_a_group_without_a_late_partition_has_no_cause(
    owners: list[Owner], unowned: tuple[Flow, ...], lost_ms: int, rebalances: int
) -> None:
    """Law: on a healthy group, the monitor names nothing. A late group always has a cause, possibly `unknown`."""
    group = facts(*owners, unowned=unowned, lost_ms=lost_ms, rebalances=rebalances)
    is_late = any(one.is_late for one in group.partitions)
    assert (cause_of_lag(group) is not None) == is_late
    calm = tuple(one._replace(is_late=False) for one in group.partitions)
    assert cause_of_lag(replace(group, partitions=calm)) is None


@given(OWNERS, st.lists(FLOWS, max_size=2).map(tuple), st.sampled_from([0, 60_000]), st.data())
def test_the_cause_does_not_depend_on_the_order_of_members_and_partitions(
    owners: list[Owner], unowned: tuple[Flow, ...], lost_ms: int, order: st.DataObject
) -> None:
    """Law: a coordinator lists members in any order. The order must not change the cause or its evidence."""
    group = facts(*owners, unowned=unowned, lost_ms=lost_ms, fair_records_per_second=15.0)
    assert cause_of_lag(shuffled(group, order)) == cause_of_lag(group)


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (
            facts(*OVERLOADED, lost_ms=150_000, rebalances=12),
            "Rebalances: because of 12 rebalances, the group did not commit for 2 minutes of the last 5 minutes.",
        ),
        (facts(*STUCK), "Stopped: records wait, but the committed offsets of the group do not increase."),
        (facts(unowned=(stuck(),)), "Stopped: the group has no members, and records wait."),
        (facts(*CALM, unowned=(stuck(),)), "Stopped: partition orders-2 has no owner, so no member reads it."),
        (
            facts(*HOT),
            (
                "Hot partition: partition orders-0 receives 900 records/s, but its owner a can consume only 300"
                " records/s. A different assignment cannot help."
            ),
        ),
        (
            facts(*UNEVEN, fair_records_per_second=215.0),
            (
                "Assignment: the partitions of member a receive 410 records/s, but the member can consume only 300"
                " records/s. In the fairest assignment, the busiest member would receive 215 records/s."
            ),
        ),
        (
            facts(slow(), *CALM),
            (
                "Slow member: slow receives 100 records/s and consumes 20 records/s. The other members consume 100 "
                "records/s on average. Only the partitions of this member lag."
            ),
        ),
        (
            facts(*(Owner(name, (late(100, 20),), "/10.0.0.9") for name in "xy"), *CALM),
            (
                "Slow host: a member on 10.0.0.9 receives 100 records/s and consumes 20 records/s on average. Members "
                "on other hosts consume 100 records/s on average. Only the partitions of this host lag."
            ),
        ),
        (
            facts(*OVERLOADED),
            (
                "Too much input: producers write 200 records/s, and the group consumes 160 records/s. The lag of every"
                " member grows."
            ),
        ),
        (
            facts(Owner("a", (late(100, 110),))),
            "Cause unknown: the group consumes faster than producers write, so the cause has ended.",
        ),
    ],
)
def test_the_sentence_contains_the_evidence(group: LagFacts, expected: str) -> None:
    cause = cause_of_lag(group)
    assert cause is not None
    assert cause.text == expected


def test_the_metric_has_the_kinds_of_the_rules() -> None:
    """The core does not import the definitions of metrics, so the list exists twice."""
    assert GROUP_LAG_CAUSE_INFO.label_values["cause"] == (*get_args(Kind), NO_MEMBERS, OPEN_TRANSACTION)


def test_changed_rates_are_no_new_cause() -> None:
    """The table would have a row for each sample."""
    before, now = cause_of_lag(facts(*HOT)), cause_of_lag(facts(HOT[0]._replace(capacity=290.0), *HOT[1:]))
    assert before is not None
    assert now is not None
    assert before.text != now.text
    assert before.identity == now.identity
    assert before.identity != Cause("stopped", NO_OWNER, topic="orders", partition=0).identity
