"""Tests of the imbalance of partitions, lag and throughput: between members, between hosts, and within each topic."""

from __future__ import annotations

import doctest
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streaming.evaluation.fairness.imbalance
from assignors import BUILT_IN, GroupAssignment, GroupSpec
from assignors.fairness.evenness import score
from assignors.fairness.fairest import fairest_sizes
from assignors.fairness.heaviest_first import heaviest_first_loads
from streaming.evaluation.fairness.imbalance import LAG, PARTITIONS, THROUGHPUT, Imbalance, Weights, divide_work
from streaming.evaluation.fairness.participants import HOST, MEMBER, TOPIC, SharedWork
from tests.assignors.groups import groups
from tests.assignors.spelled import group, held, of_too_many_subscriptions

SEVEN = group({"t": 7}, A="t", B="t", C="t", D="t", E="t")


def shared(spec: GroupSpec, now: GroupAssignment, hosts: Mapping[str, str] | None = None) -> SharedWork:
    """Return the assignment to evaluate. By default each member has its own host."""
    own = {found.member_id: f"/{found.member_id}" for found in spec.members}
    return SharedWork(spec, now, own if hosts is None else hosts)


def imbalances(work: SharedWork, measure: str = PARTITIONS, weights: Weights | None = None) -> Sequence[Imbalance]:
    """Return all imbalances of one measure."""
    division = divide_work(work)
    return division.imbalance(measure, None if weights is None else division.amounts(weights))


def imbalance_in(scope: str, found: Sequence[Imbalance], topic: str | None = None) -> Imbalance:
    (one,) = [one for one in found if (one.scope, one.topic) == (scope, topic)]
    return one


def test_the_worked_examples_are_correct() -> None:
    assert doctest.testmod(streaming.evaluation.fairness.imbalance).failed == 0


def test_all_numbers_of_a_partition_imbalance() -> None:
    """7 over 5, assigned 3/1/1/1/1: A has one partition too many, and no other member is affected."""
    found = imbalances(shared(SEVEN, held(A="t0 t1 t2", B="t3", C="t4", D="t5", E="t6")))
    assert imbalance_in(MEMBER, found) == Imbalance(
        measure=PARTITIONS,
        scope=MEMBER,
        participants=5,
        total=7,
        largest=3,
        smallest=1,
        busiest="A",
        idle=0,
        max_to_mean_ratio=15 / 7,
        coefficient_of_variation=pytest.approx(0.8 / 1.4),
        gini=pytest.approx(8 / 35),
        score=80,
        excess=1,
        idle_in_any_assignment=0,
    )


@pytest.mark.parametrize(
    ("spec", "now", "score", "excess", "idle", "must_be_idle", "why"),
    [
        (
            SEVEN,
            held(A="t0 t1", B="t2 t3", C="t4", D="t5", E="t6"),
            100,
            0,
            0,
            0,
            "a difference of one cannot be avoided",
        ),
        (SEVEN, held(A="t0 t1", B="t2 t3", C="t4 t5", D="t6", E=""), 80, 0, 1, 0, "E is idle, and this is avoidable"),
        (group({"t": 1}, A="t", B="t"), held(A="t0", B=""), 100, 0, 1, 1, "B is idle in every assignment"),
        (group({"t": 4}, A="t", B="u"), held(A="t0 t1 t2 t3", B=""), 100, 0, 1, 1, "B's topic does not exist"),
        (
            group({"t": 4, "u": 1}, A="t", B="tu"),
            held(A="t0 t1 t2 t3", B="u0"),
            50,
            1,
            0,
            0,
            "B subscribes to both topics and could take one partition of t: 3 and 2",
        ),
        (
            group({"t": 4, "u": 1}, A="t", B="u"),
            held(A="t0 t1 t2 t3", B="u0"),
            100,
            0,
            0,
            0,
            "here B cannot take a partition of t",
        ),
        (
            group({}, A="t", B="t"),
            held(A="", B=""),
            100,
            0,
            2,
            2,
            "no partitions to share: no member is treated unfairly",
        ),
    ],
)
def test_unavoidable_imbalance_never_counts(  # noqa: PLR0913, PLR0917 - a row of the table
    spec: GroupSpec, now: GroupAssignment, score: float, excess: float, idle: int, must_be_idle: int, why: str
) -> None:
    found = imbalance_in(MEMBER, imbalances(shared(spec, now)))
    assert (found.score, found.excess) == (pytest.approx(score), excess), why
    assert (found.idle, found.idle_in_any_assignment) == (idle, must_be_idle), why


def test_a_topic_is_evaluated_without_the_other_topics() -> None:
    """confluent-kafka-dotnet 1712: 4/0 and 0/4 is even in total, but as uneven as possible in each topic."""
    spec = group({"t": 4, "u": 4}, A="tu", B="tu")
    found = imbalances(shared(spec, held(A="t0 t1 t2 t3", B="u0 u1 u2 u3")))
    assert [(one.scope, one.topic, one.score) for one in found] == [
        (MEMBER, None, 100),
        (HOST, None, 100),
        (TOPIC, "t", 0),
        (TOPIC, "u", 0),
    ]


@pytest.mark.parametrize(
    ("hosts", "largest", "busiest", "score", "why"),
    [
        (
            {"A": "/a", "B": "/b", "C": "/c"},
            2,
            "/a",
            100.0,
            "each member has its own host: the same result as among members",
        ),
        (
            {"A": "/a", "B": "/a", "C": "/b"},
            4,
            "/a",
            200 / 3,
            "two members on one host: it has 4 of 6, and b could have 3",
        ),
        ({"A": "/a", "B": "/a", "C": "/a"}, 6, "/a", 100, "all members are on one host: the work cannot be shared"),
    ],
)
def test_work_is_summed_by_client_host(
    hosts: dict[str, str], largest: int, busiest: str, score: float, why: str
) -> None:
    spec = group({"t": 6}, A="t", B="t", C="t")
    found = imbalance_in(HOST, imbalances(shared(spec, held(A="t0 t1", B="t2 t3", C="t4 t5"), hosts)))
    assert (found.participants, found.largest, found.busiest) == (len(set(hosts.values())), largest, busiest), why
    assert found.score == pytest.approx(score), why


def test_a_host_can_take_partitions_that_any_of_its_members_subscribes_to() -> None:
    """A and B share a host and subscribe to one topic each. Only this host can have u, and also half of t."""
    spec = group({"t": 2, "u": 2}, A="t", B="u", C="t")
    found = imbalance_in(
        HOST, imbalances(shared(spec, held(A="t0", B="u0 u1", C="t1"), {"A": "/a", "B": "/a", "C": "/c"}))
    )
    assert (found.largest, found.excess) == (3, 1)


@pytest.mark.parametrize("hosts", [{"A": "/a"}, {"A": "/a", "B": ""}], ids=["missing", "empty"])
def test_an_unknown_host_makes_all_hosts_unknown(hosts: dict[str, str]) -> None:
    """The member is on some host. If it were left out, this host would look idle."""
    found = imbalances(shared(group({"t": 2}, A="t", B="t"), held(A="t0", B="t1"), hosts))
    assert imbalance_in(HOST, found) == Imbalance(measure=PARTITIONS, scope=HOST, unknown_reason="host_unknown")
    assert imbalance_in(MEMBER, found).score == 100


@pytest.mark.parametrize("lag", [{("t", 0): 5}, {("t", 0): 5, ("t", 1): None}], ids=["no entry", "None"])
def test_the_lag_of_a_member_is_unknown_if_one_partition_is_unknown(lag: dict[tuple[str, int], int | None]) -> None:
    """Unknown is not 0, because B would look caught up. The topic with complete lag keeps its numbers."""
    spec = group({"t": 2, "u": 1}, A="tu", B="tu")
    found = imbalances(shared(spec, held(A="t0 u0", B="t1")), LAG, {**lag, ("u", 0): 7})
    why = {"unknown_reason": "lag_unknown", "unknown_partitions": 1}
    assert imbalance_in(MEMBER, found) == Imbalance(measure=LAG, scope=MEMBER, **why)
    assert imbalance_in(TOPIC, found, "t") == Imbalance(measure=LAG, scope=TOPIC, topic="t", **why)
    assert (imbalance_in(TOPIC, found, "u").total, imbalance_in(TOPIC, found, "u").score) == (7, 100)


@pytest.mark.parametrize(
    ("weights", "now", "score", "excess", "why"),
    [
        (
            [90, 5, 4, 1],
            held(A="t0", B="t1", C="t2 t3"),
            100,
            0,
            "one partition has all the lag: no better assignment exists",
        ),
        (
            [90, 5, 4, 1],
            held(A="t0 t1", B="t2", C="t3"),
            50,
            5,
            "the owner of this partition does not need other partitions",
        ),
        ([0, 0, 0, 0], held(A="t0 t1 t2 t3", B="", C=""), 100, 0, "no lag: no member has too much"),
        ([10, 10, 10, 10], held(A="t0 t1 t2 t3", B="", C=""), 0, 20, "all lag is at one member"),
        ([10, 10, 10, 10], held(A="t0 t1", B="t2", C="t3"), 100, 0, "four equal partitions over three members: 2 1 1"),
        ([0.25, 0.5, 0.25, 0.5], held(A="t0 t2", B="t1", C="t3"), 100, 0, "rates are fractions"),
    ],
)
def test_weights_are_compared_with_assigning_the_heaviest_partition_first(
    weights: list[float], now: GroupAssignment, score: float, excess: float, why: str
) -> None:
    spec = group({"t": 4}, A="t", B="t", C="t")
    found = imbalances(shared(spec, now), THROUGHPUT, {("t", number): weight for number, weight in enumerate(weights)})
    for one in (imbalance_in(MEMBER, found), imbalance_in(TOPIC, found, "t")):
        assert (one.measure, one.score, one.excess) == (THROUGHPUT, pytest.approx(score), pytest.approx(excess)), why
        assert (one.idle, one.idle_in_any_assignment) == (None, None), "idleness is not defined for lag"


def test_without_work_no_member_is_busiest() -> None:
    """All members have caught up. A name here would send the engineer to a member without a problem."""
    found = imbalances(shared(group({"t": 1}, A="t", B="t"), held(A="t0", B="")), LAG, {("t", 0): 0})
    assert {(one.busiest, one.max_to_mean_ratio, one.gini) for one in found} == {(None, None, None)}


@pytest.mark.parametrize("lag", [-1, math.nan, math.inf])
def test_an_impossible_weight_is_refused(lag: float) -> None:
    """Lag is never negative. A negative lag is a computing error and must not be shown."""
    with pytest.raises(ValueError, match="lag of a partition is negative or not finite"):
        imbalances(shared(group({"t": 2}, A="t"), held(A="t0 t1")), LAG, {("t", 0): lag, ("t", 1): 5})


@pytest.mark.parametrize(
    ("now", "member_reason", "t_reason", "u_reason", "why"),
    [
        (held(A="t0 u0", B="t1"), "", "", "", "whole"),
        (held(A="t0 u0", B=""), "partitions_unassigned", "partitions_unassigned", "", "t1 is withheld; u is complete"),
        (held(A="t0 u0", B="t1 t0"), "law_broken", "law_broken", "law_broken", "t0 has two owners"),
        (held(A="t0 u0", B="t1 t2"), "law_broken", "law_broken", "law_broken", "t2 does not exist"),
        (held(A="t0 u0", B="t1", C="x0"), "law_broken", "law_broken", "law_broken", "C is not in the group"),
        (held(A="t0 u0 t1"), "", "", "", "a member without an entry has no partitions, which is valid"),
    ],
)
def test_an_incomplete_assignment_has_numbers_but_no_score(
    now: GroupAssignment, member_reason: str, t_reason: str, u_reason: str, why: str
) -> None:
    found = imbalances(shared(group({"t": 2, "u": 1}, A="tu", B="tu"), now))
    evaluated = (
        imbalance_in(MEMBER, found),
        imbalance_in(HOST, found),
        imbalance_in(TOPIC, found, "t"),
        imbalance_in(TOPIC, found, "u"),
    )
    assert tuple(one.score_reason for one in evaluated) == (member_reason, member_reason, t_reason, u_reason), why
    assert all((one.score is None) == (one.excess is None) == bool(one.score_reason) for one in evaluated), why
    assert all(one.total is not None for one in evaluated), why


def test_partitions_that_a_strategy_shares_on_purpose_break_no_rule() -> None:
    """Faust's standby tables are partitions of two members. Before, the page showed "law broken" for its fairness."""
    known = replace(shared(group({"t": 2}, A="t", B="t"), held(A="t0 t1", B="t1")), has_one_owner=False)
    (by_member,) = [one for one in imbalances(known) if one.scope == MEMBER]
    assert (by_member.score, by_member.score_reason) == (None, "partitions_shared")


def test_a_topic_of_unknown_size_does_not_remove_the_score_of_other_topics() -> None:
    """Its partitions count in the totals of members. Without its size, the fairest total is unknown."""
    spec = group({"t": 2}, A="tu", B="tu")
    found = imbalances(replace(shared(spec, held(A="t0 u0", B="t1 u1")), unknown_topics={"u"}))
    reasons = {(one.scope, one.topic): one.score_reason for one in found}
    missing = "metadata_missing"
    assert reasons == {(MEMBER, None): missing, (HOST, None): missing, (TOPIC, "t"): "", (TOPIC, "u"): missing}
    assert (imbalance_in(MEMBER, found).total, imbalance_in(TOPIC, found, "t").score) == (4, 100)


def test_with_too_many_different_subscriptions_there_are_numbers_and_no_score() -> None:
    """Evaluating one group must not delay the other groups. Within one topic no search is necessary."""
    spec = of_too_many_subscriptions()
    found = imbalances(shared(spec, BUILT_IN["roundrobin"].assign(spec)))
    assert (imbalance_in(MEMBER, found).total, imbalance_in(MEMBER, found).score) == (600, None)
    assert (
        imbalance_in(MEMBER, found).score_reason == imbalance_in(HOST, found).score_reason == "subscriptions_too_many"
    )
    assert imbalance_in(TOPIC, found, "t000").score == 100


def test_a_group_without_members_has_no_imbalance() -> None:
    assert imbalances(shared(group({"t": 1}), GroupAssignment({}))) == ()


@given(groups(), st.sampled_from(["range", "roundrobin", "sticky", "uniform"]))
def test_the_excess_equals_that_of_the_alert_and_hosts_with_one_member_equal_members(
    spec: GroupSpec, strategy: str
) -> None:
    """`rebalance_monitor_excess_partitions` and the table must agree."""
    now = BUILT_IN[strategy].assign(spec)
    if not spec.members:
        return
    found = imbalances(SharedWork(spec, now, {one.member_id: f"/{one.member_id}" for one in spec.members}))
    total = imbalance_in(MEMBER, found)
    sizes, fairest = sorted(map(len, now.members.values())), list(fairest_sizes(spec))
    assert total.excess == max(0, sizes[-1] - fairest[-1])
    assert total.score is not None
    assert (total.score == 100) == (sizes == fairest)
    by_host = imbalance_in(HOST, found)
    assert (by_host.score, by_host.gini, by_host.excess) == (total.score, total.gini, total.excess)
    assert sum(one.total or 0 for one in found if one.scope == TOPIC) == total.total


@given(groups(), st.data())
def test_the_excess_of_lag_is_relative_to_the_heaviest_first_assignment_and_never_negative(
    spec: GroupSpec, data: st.DataObject
) -> None:
    """No scope has a negative excess, whether or not all members can have the same partitions."""
    if not spec.members:
        return
    now = BUILT_IN["range"].assign(spec)
    lag = {at: data.draw(st.integers(0, 50)) for of_member in now.members.values() for at in of_member}
    found = imbalances(shared(spec, now), LAG, lag)
    total = imbalance_in(MEMBER, found)
    fairest = heaviest_first_loads(spec, lag)
    assert total.excess == max(0, (total.largest or 0) - max(fairest))
    assert total.score == score([sum(lag[at] for at in of_member) for of_member in now.members.values()], fairest)
    assert all(one.excess is not None and one.excess >= 0 for one in (*found, *imbalances(shared(spec, now))))


def test_a_topic_that_changed_since_the_rebalance_is_not_evaluated_by_its_present_size() -> None:
    """The leader knew two partitions, so the third one is not evaluated. Topic u is still evaluated."""
    spec = group({"t": 3, "u": 2}, A="tu", B="tu")
    found = imbalances(replace(shared(spec, held(A="t0 u0", B="t1 u1")), changed_topics={"t"}))
    assert {(one.scope, one.topic): one.score_reason for one in found} == {
        (MEMBER, None): "metadata_changed",
        (HOST, None): "metadata_changed",
        (TOPIC, "t"): "metadata_changed",
        (TOPIC, "u"): "",
    }
