"""The advice for late groups, by the numbered rules of `advice.py`. Each row of the tables has its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import fsum
from random import Random
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import BUILT_IN, GroupAssignment, GroupSpec, MemberSubscription, PartitionAssignor, TopicPartition
from assignors.what_if.comparison import compare
from assignors.what_if.what_if import Change, WhatIf, what_if
from streaming.evaluation.assignment.leader import BROKER, JAVA
from streaming.evaluation.assignment.library_strategies import LIBRARY_STRATEGIES
from streaming.evaluation.causes.cause import ASSIGNMENT, UNDER_PROVISIONED, Kind
from streaming.evaluation.what_if.advice import (
    ADVISED_KINDS,
    BetterAssignment,
    LateGroupInputs,
    MoreMembers,
    TooHotPartition,
    WeightedStrategy,
    advise,
)
from streaming.evaluation.what_if.inputs import MAX_MEMBERS, WhatIfInputs
from tests.assignors.groups import with_claims
from tests.assignors.spelled import group, owners

CLIENT_STRATEGIES, SERVER_STRATEGIES = LIBRARY_STRATEGIES[JAVA], LIBRARY_STRATEGIES[BROKER]
TEN_TOPICS = "abcdefghij"
UNEVEN_RATES = dict(zip(TEN_TOPICS, (100, 15, 70, 15, 60, 17, 50, 17, 50, 16), strict=True))


def late(
    spec: GroupSpec,
    strategy: str,
    capacity: float,
    rates: Mapping[TopicPartition, float],
    present: Mapping[TopicPartition, str] | None = None,
) -> LateGroupInputs:
    """Return the inputs of a classic group. By default, its strategy computed its present assignment."""
    assigned = BUILT_IN[strategy].assign(spec).members
    by_strategy = {partition: member_id for member_id, held in assigned.items() for partition in held}
    known = WhatIfInputs(spec, by_strategy if present is None else present)
    return LateGroupInputs(known, rates, capacity, CLIENT_STRATEGIES, strategy)


def of_one_topic(*rates: float) -> dict[TopicPartition, float]:
    """Return the rates of the partitions of topic t."""
    return {("t", number): rate for number, rate in enumerate(rates)}


def text(kind: Kind, inputs: LateGroupInputs) -> str | None:
    """Return the advice as text."""
    advice = advise(kind, inputs)
    return advice and advice.text


SKEWED = late(
    group(dict.fromkeys(TEN_TOPICS, 1), A=TEN_TOPICS, B=TEN_TOPICS),
    "range",
    300,
    {(topic, 0): float(rate) for topic, rate in UNEVEN_RATES.items()},
)
"""Range gives the only partition of each topic to the first member."""
THREE = late(group({"t": 12}, A="t", B="t", C="t"), "range", 200, of_one_topic(*[90.0] * 12))
WEIGHTED = late(group({"t": 4}, A="t", B="t"), "range", 185, of_one_topic(100, 90, 90, 20))


@pytest.mark.parametrize(
    ("kind", "inputs", "expected", "why"),
    [
        (
            ASSIGNMENT,
            SKEWED,
            "With sticky, the busiest member would receive 260 instead of 410 records/s. 5 partitions would move.",
            "rule 6: the example of the issue. roundrobin moves 5, too, but leaves 330 records/s",
        ),
        (
            UNDER_PROVISIONED,
            SKEWED,
            "With sticky, the busiest member would receive 260 instead of 410 records/s. 5 partitions would move.",
            "rule 9: an assignment for the present members comes before more members",
        ),
        (
            ASSIGNMENT,
            SKEWED._replace(own_strategy="cooperative-sticky"),
            (
                "After a rebalance with cooperative-sticky, the busiest member would receive 260 instead of 410"
                " records/s. 5 partitions would move."
            ),
            "rule 6: sticky is equal, but the group's own strategy needs no change of the configuration",
        ),
        (
            ASSIGNMENT,
            late(group({"t": 2}, A="t", B="t"), "range", 300, of_one_topic(200, 200), owners(A="t0 t1")),
            (
                "After a rebalance with range, the busiest member would receive 200 instead of 400 records/s."
                " 1 partition would move."
            ),
            "rule 6: the present assignment is not the one that range computes",
        ),
        (
            ASSIGNMENT,
            SKEWED._replace(capacity_records_per_second=200),
            None,
            "rule 7: half of 410 records/s exceeds 200",
        ),
        (
            ASSIGNMENT,
            SKEWED._replace(capacity_records_per_second=262),
            (
                "No built-in strategy is sufficient. With a strategy that uses the measured rates as weights"
                " (assignors/CUSTOM.md), the busiest member would receive 211 records/s."
            ),
            "rule 3: 260 records/s are too close to 262, because rates have errors",
        ),
        (
            ASSIGNMENT,
            WEIGHTED,
            (
                "No built-in strategy is sufficient. With a strategy that uses the measured rates as weights"
                " (assignors/CUSTOM.md), the busiest member would receive 180 records/s."
            ),
            "rule 7: range pairs 100 with 90, and so does roundrobin. 100 + 20 and 90 + 90 would be possible",
        ),
        (
            ASSIGNMENT,
            WEIGHTED._replace(capacity_records_per_second=170),
            None,
            "rule 7: no assignment is known that keeps each member below 170",
        ),
        (
            UNDER_PROVISIONED,
            THREE,
            (
                "6 members are enough if each member consumes 200 records/s."
                " With more than 12 members, some would be idle."
            ),
            "rule 9: two partitions with 90 records/s each. The example of the issue",
        ),
        (
            UNDER_PROVISIONED,
            THREE._replace(capacity_records_per_second=91.9),
            (
                "12 members are enough if each member consumes 92 records/s."
                " With more than 12 members, some would be idle."
            ),
            "rule 9: each member can consume one partition",
        ),
        (
            UNDER_PROVISIONED,
            THREE._replace(capacity_records_per_second=91),
            None,
            "rule 3: one partition is too close to the capacity, and a member cannot have less",
        ),
        (
            UNDER_PROVISIONED,
            late(group({"t": 3}, A="t", B="t"), "range", 300, of_one_topic(10, 900, 350)),
            (
                "More members cannot help. Partition t-1 alone receives 900 records/s, but a member can"
                " consume only 300 records/s."
            ),
            "rule 8: a partition has one owner",
        ),
        (
            UNDER_PROVISIONED,
            late(group({"t": 2, "u": 2}, A="tu"), "range", 150, dict.fromkeys(owners(A="t0 t1 u0 u1"), 100.0)),
            (
                "With roundrobin, 4 members are enough if each member consumes 150 records/s. With more than 4 members,"
                " some would be idle."
            ),
            "rule 9: range gives t0 and u0 to one member, and the third member would be idle",
        ),
        (
            UNDER_PROVISIONED,
            late(group({"t": 2, "u": 2}, A="tu"), "range", 250, dict.fromkeys(owners(A="t0 t1 u0 u1"), 100.0)),
            "2 members are enough if each member consumes 250 records/s. With more than 2 members, some would be idle.",
            "rule 10: under range, a third member has no partition of either topic",
        ),
        (
            UNDER_PROVISIONED,
            late(group({"t": 4, "u": 1}, A="t", B="tu"), "range", 100, dict.fromkeys(owners(A="t0 t1 t2 t3 u0"), 90.0)),
            None,
            "rule 9: nobody knows to which topics a new member would subscribe",
        ),
        (
            UNDER_PROVISIONED,
            late(group({"t": 300}, A="t", B="t"), "range", 2, of_one_topic(*[1.0] * 300)),
            None,
            "rule 9: 300 members would be necessary, and the what-if is limited to 100",
        ),
        (ASSIGNMENT, THREE._replace(capacity_records_per_second=400), None, "rule 4: 360 records/s are not too many"),
        (
            UNDER_PROVISIONED,
            THREE._replace(capacity_records_per_second=400),
            None,
            "rule 4: the rates have fallen, so the present members are enough",
        ),
        (
            UNDER_PROVISIONED,
            THREE._replace(produce_rates=of_one_topic(*[90.0] * 11)),
            None,
            "rule 4: the rate of one partition is unknown, and 0 would be a guess",
        ),
        (
            ASSIGNMENT,
            SKEWED._replace(strategies=SERVER_STRATEGIES, own_strategy="server-range"),
            "With uniform, the busiest member would receive 260 instead of 410 records/s. 5 partitions would move.",
            "rule 5: members of a KIP-848 group cannot choose sticky",
        ),
        (
            ASSIGNMENT,
            SKEWED._replace(
                strategies=SERVER_STRATEGIES,
                own_strategy="server-range",
                capacity_records_per_second=262,
                can_be_custom=False,
            ),
            None,
            "rule 7: the members of a KIP-848 group cannot use a strategy of their own",
        ),
        (
            ASSIGNMENT,
            SKEWED._replace(strategies=(), capacity_records_per_second=262),
            None,
            "rule 5: nothing is known about the strategies of the library",
        ),
        (
            ASSIGNMENT,
            late(
                group({"t": 4, "u": 1}, A="t", B="tu"),
                "range",
                185,
                of_one_topic(100, 90, 90, 20) | {("u", 0): 0.0},
            ),
            None,
            "rule 7: the subscriptions differ, so the example can assign the partitions in a worse way",
        ),
    ],
)
def test_each_advice_follows_from_the_rules(
    kind: Kind, inputs: LateGroupInputs, expected: str | None, why: str
) -> None:
    assert text(kind, inputs) == expected, why


@pytest.mark.parametrize("kind", sorted(set(get_args(Kind)) - ADVISED_KINDS))
def test_no_other_cause_has_advice(kind: Kind) -> None:
    """Rule 1: more members do not help against a slow host, a hot partition or a stopped group."""
    assert text(kind, SKEWED) is None


def test_every_built_in_strategy_belongs_to_one_protocol() -> None:
    """Rule 5: a new built-in strategy must not be missing."""
    assert sorted(one.name for one in (*CLIENT_STRATEGIES, *SERVER_STRATEGIES)) == sorted(BUILT_IN)


@st.composite
def late_groups(draw: st.DrawFn) -> LateGroupInputs:
    """Draw a late group with any assignment, any rates, and a strategy of its protocol."""
    topics = draw(st.dictionaries(st.sampled_from("tuv"), st.integers(1, 5), min_size=1))
    subscriptions = st.lists(st.sampled_from(sorted(topics)), min_size=1, unique=True)
    common = draw(st.none() | subscriptions)
    names = draw(st.lists(st.sampled_from("ABCDE"), min_size=1, unique=True))
    members = tuple(MemberSubscription(name, tuple(common or draw(subscriptions))) for name in names)
    present, rates = {}, {}
    for topic in sorted({topic for member in members for topic in member.topics}):
        subscribers = [member.member_id for member in members if topic in member.topics]
        for number in range(topics[topic]):
            present[topic, number] = draw(st.sampled_from(subscribers))
            rates[topic, number] = draw(st.sampled_from([0.0, 0.1, 3.0, 10.0, 10.0, 40.0]))
    strategies = draw(st.sampled_from([CLIENT_STRATEGIES, SERVER_STRATEGIES]))
    can_be_custom = strategies is CLIENT_STRATEGIES
    own = draw(st.sampled_from([one.name for one in strategies]))
    known = WhatIfInputs(GroupSpec(members, topics), present)
    return LateGroupInputs(known, rates, draw(st.sampled_from([5.0, 12.0, 30.0, 45.0])), strategies, own, can_be_custom)


def final_assignment(
    spec: GroupSpec, present: Mapping[TopicPartition, str], strategy: str, members: int
) -> GroupAssignment:
    """Compute a strategy's last assignment for this number of members, without the what-if."""
    more = members - len(spec.members)
    joined = (MemberSubscription(f"~new-member-{at + 1}", spec.members[0].topics) for at in range(more))
    owned = {
        member.member_id: tuple(sorted(partition for partition, owner in present.items() if owner == member.member_id))
        for member in spec.members
    }
    claims = with_claims(replace(spec, members=(*spec.members, *joined)), owned)
    return compare(claims, BUILT_IN[strategy]).assignment


def busiest(assignment: GroupAssignment, rates: Mapping[TopicPartition, float]) -> float:
    return max(fsum(rates[partition] for partition in held) for held in assignment.members.values())


@given(late_groups())
def test_a_recommended_assignment_keeps_every_member_below_its_capacity(inputs: LateGroupInputs) -> None:
    """The counts are computed again from the strategy's assignment: the rates, and the partitions that move."""
    advice, (spec, present) = advise(ASSIGNMENT, inputs), inputs.group
    if not isinstance(advice, BetterAssignment):
        return
    found = final_assignment(spec, present, advice.strategy, len(spec.members))
    moved = [
        partition for member_id, held in found.members.items() for partition in held if present[partition] != member_id
    ]
    assert advice.after_records_per_second == busiest(found, inputs.produce_rates)
    assert advice.after_records_per_second < inputs.capacity_records_per_second
    assert advice.after_records_per_second < advice.before_records_per_second
    assert advice.moved_partitions == len(moved)
    assert sorted(chain.from_iterable(found.members.values())) == sorted(present)


@given(late_groups())
def test_a_recommended_number_of_members_is_the_smallest_that_is_enough(inputs: LateGroupInputs) -> None:
    """One member fewer is not enough. One member more than the useful number is idle."""
    advice, (spec, present) = advise(UNDER_PROVISIONED, inputs), inputs.group
    if not isinstance(advice, MoreMembers):
        return
    enough = final_assignment(spec, present, advice.strategy, advice.members)
    assert busiest(enough, inputs.produce_rates) < inputs.capacity_records_per_second
    for fewer in range(len(spec.members), advice.members):
        too_few = final_assignment(spec, present, advice.strategy, fewer)
        assert busiest(too_few, inputs.produce_rates) > inputs.target_records_per_second
    assert len(spec.members) < advice.members <= min(advice.useful_members, MAX_MEMBERS)
    idle = Counter(
        not held for held in final_assignment(spec, present, advice.strategy, advice.useful_members).members.values()
    )
    assert idle[True] == 0
    one_more = final_assignment(spec, present, advice.strategy, advice.useful_members + 1)
    assert () in one_more.members.values()


@given(late_groups())
def test_no_number_of_members_is_enough_only_if_one_partition_is_too_much(inputs: LateGroupInputs) -> None:
    hottest = max(inputs.produce_rates.values())
    advice = advise(UNDER_PROVISIONED, inputs)
    if isinstance(advice, TooHotPartition):
        assert inputs.produce_rates[advice.partition] == hottest > inputs.capacity_records_per_second
    elif advice is not None:
        assert hottest < inputs.capacity_records_per_second


@given(late_groups())
def test_a_weighted_strategy_is_recommended_only_if_no_built_in_one_is_enough(inputs: LateGroupInputs) -> None:
    advice, (spec, present) = advise(ASSIGNMENT, inputs), inputs.group
    if not isinstance(advice, WeightedStrategy):
        return
    assert advice.busiest_records_per_second < inputs.capacity_records_per_second
    for strategy in inputs.strategies:
        found = final_assignment(spec, present, strategy.name, len(spec.members))
        assert busiest(found, inputs.produce_rates) > inputs.target_records_per_second


@given(late_groups(), st.sampled_from(sorted(ADVISED_KINDS)), st.randoms(use_true_random=False))
def test_the_advice_does_not_depend_on_the_order_of_members_or_partitions(
    inputs: LateGroupInputs, kind: Kind, random: Random
) -> None:
    spec, present = inputs.group
    members, rates, owned = list(spec.members), list(inputs.produce_rates.items()), list(present.items())
    for items in (members, rates, owned):
        random.shuffle(items)
    shuffled = WhatIfInputs(replace(spec, members=tuple(members)), dict(owned))
    assert advise(kind, inputs._replace(group=shuffled, produce_rates=dict(rates))) == advise(kind, inputs)


def test_the_search_for_members_computes_no_what_if_without_strategies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group's own strategy is custom, so only the other strategies are tried. Each what-if has a baseline."""
    tried = list[int]()

    def count_strategies(
        spec: GroupSpec,
        present: Mapping[TopicPartition, str],
        strategies: Sequence[PartitionAssignor],
        change: Change,
        rates: Mapping[TopicPartition, float],
    ) -> WhatIf:
        tried.append(len(strategies))
        return what_if(spec, present, strategies, change, rates)

    monkeypatch.setattr("streaming.evaluation.what_if.advice.what_if", count_strategies)
    assert isinstance(advise(UNDER_PROVISIONED, THREE._replace(own_strategy="custom")), MoreMembers)
    assert tried
    assert 0 not in tried
