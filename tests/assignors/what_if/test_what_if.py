"""Tests of the outcomes of all strategies for a group, with and without a change."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import BUILT_IN, AssignorFailedError
from assignors.fairness.evenness import evenness
from assignors.fairness.fewest_moves import count_moves
from assignors.model import GroupAssignment, GroupSpec, MemberSubscription
from assignors.what_if.what_if import (
    USUAL_CHANGES,
    Change,
    FailedOutcome,
    ImpossibleChangeError,
    Outcome,
    apply_change,
    measure_today,
    what_if,
    what_if_as_json,
)
from tests.assignors.groups import groups
from tests.assignors.spelled import group, of_too_many_subscriptions, owners

FOUR = group({"t": 4}, A="t", B="t")
ALL_ON_A = owners(A="t0 t1 t2 t3")


class ToTheLast:
    """A user's strategy that assigns every partition to its last subscriber."""

    name = "to-the-last"

    def assign(self, spec: GroupSpec) -> GroupAssignment:
        """Give every partition to its last subscriber."""
        last = {topic: member.member_id for member in spec.members for topic in member.topics}
        return GroupAssignment(
            {
                member.member_id: tuple(
                    (topic, number)
                    for topic in sorted(spec.partitions)
                    if last.get(topic) == member.member_id
                    for number in range(spec.partitions[topic])
                )
                for member in spec.members
            }
        )


class Failing:
    """A user's strategy that fails. The guard around it raises the same error."""

    name = "failing"

    def assign(self, spec: GroupSpec) -> GroupAssignment:
        """Raise."""
        raise AssignorFailedError("raised", f"KeyError: {len(spec.members)}")


def outcome(spec: GroupSpec, held: dict[tuple[str, int], str], name: str, change: Change | None = None) -> Outcome:
    (found,) = what_if(spec, held, [BUILT_IN[name]], change).outcomes
    assert isinstance(found, Outcome)
    return found


def test_today_is_measured_like_an_outcome():
    """Today's owners are the first row of the table."""
    assert measure_today(FOUR, ALL_ON_A) == Outcome(
        strategy=None,
        sizes=(0, 4),
        evenness=evenness([0, 4]),
        score=0.0,
        excess_partitions=2,
        topic_spread={"t": 4},
        idle_members=("B",),
        moved_partitions=0,
        unassigned_partitions=0,
        rounds=0,
    )


RATES = {("t", number): rate for number, rate in enumerate([40.0, 1.0, 2.0, 3.0])}


@pytest.mark.parametrize(
    ("name", "change", "rates", "busiest", "why"),
    [
        ("range", Change(), RATES, 41, "rule 6: A gets t0 and t1"),
        ("roundrobin", Change(), RATES, 42, "rule 6: A gets t0 and t2"),
        ("range", Change(members=-1), RATES, 46, "B gets everything"),
        ("range", Change(members=2), RATES, 40, "each member gets one partition, and t0 cannot be divided"),
        ("cooperative-sticky", Change(), {**RATES, ("t", 3): 90.0}, 92, "B has t2 and t3 only after the second round"),
        ("range", Change(partitions={"t": 5}), RATES, None, "nobody has measured the rate of the new partition"),
        ("range", Change(), {**RATES, ("t", 9): 99.0}, 41, "the rate of a deleted partition is ignored"),
        ("range", Change(), {}, None, "no rate is known"),
    ],
)
def test_the_busiest_member_has_the_largest_sum_of_rates(
    name: str, change: Change, rates: dict[tuple[str, int], float], busiest: float | None, why: str
):
    (found,) = what_if(FOUR, ALL_ON_A, [BUILT_IN[name]], change, rates).outcomes
    assert isinstance(found, Outcome)
    assert found.busiest_records_per_second == busiest, why
    today = measure_today(FOUR, ALL_ON_A, rates).busiest_records_per_second
    assert today == (sum(rates[partition] for partition in ALL_ON_A) if rates else None)


@pytest.mark.parametrize(
    ("held", "excess", "why"),
    [
        ([2, 2, 1, 1, 1], 0, "7 partitions over 5 members cannot be fairer"),
        ([3, 1, 1, 1, 1], 1, "one partition could belong to a different member"),
        ([7, 0, 0, 0, 0], 5, "one member has everything"),
        ([2, 2, 2, 1, 0], 0, "unfair, but the busiest member has no more than necessary"),
        ([1, 1, 0, 0, 0], 0, "withheld partitions between two cooperative rounds do not count"),
    ],
)
def test_the_excess_of_the_busiest_member(held: list[int], excess: int, why: str):
    left = iter(("t", number) for number in range(7))
    today = {next(left): member_id for member_id, size in zip("ABCDE", held, strict=True) for _ in range(size)}
    spec = group({"t": 7}, A="t", B="t", C="t", D="t", E="t")
    assert measure_today(spec, today).excess_partitions == excess, why


def test_without_a_complete_assignment_there_is_no_score():
    """Between two cooperative rounds, one partition per member looks even but has no meaning."""
    found = measure_today(FOUR, owners(A="t0", B="t1"))
    assert (found.score, found.unassigned_partitions, found.excess_partitions) == (None, 2, 0)


@pytest.mark.parametrize(
    ("name", "change", "sizes", "moved", "rounds", "why"),
    [
        ("sticky", Change(), (2, 2), 2, 1, "half of A's partitions move to B"),
        ("cooperative-sticky", Change(), (2, 2), 2, 2, "the same, in two rounds"),
        ("range", Change(members=1), (1, 1, 2), 2, 1, "A is first and keeps t0 and t1"),
        ("sticky", Change(members=1), (1, 1, 2), 2, 1, "B and the new member get one each"),
        ("range", Change(members=-1), (4,), 4, 1, "A, who has most, leaves: all of its partitions move"),
        ("sticky", Change(partitions={"t": 8}), (4, 4), 0, 1, "B gets the four new partitions, which is no move"),
        ("range", Change(partitions={"t": 8}), (4, 4), 0, 1, "A keeps the first four"),
        ("sticky", Change(members=2, partitions={"t": 8}), (2, 2, 2, 2), 2, 1, "both at once"),
    ],
)
def test_each_change_has_its_outcome(  # noqa: PLR0913, PLR0917 - a row of the table
    name: str, change: Change, sizes: tuple[int, ...], moved: int, rounds: int, why: str
):
    found = outcome(FOUR, ALL_ON_A, name, change)
    assert (found.sizes, found.moved_partitions, found.rounds) == (sizes, moved, rounds), why
    assert (found.score, found.excess_partitions, found.unassigned_partitions) == (100.0, 0, 0), why


def test_limits_of_all_strategies_are_reported_once():
    """With three partitions, two of five members are always idle. The partition of the member that left must move."""
    spec = group({"t": 3}, A="t", B="t", C="t", D="t", E="t")
    found = what_if(spec, owners(A="t0", B="t1", gone="t2"), BUILT_IN.values())
    assert (found.members, found.partitions, found.smallest_maximum) == (5, 3, 1)
    assert (found.idle_in_any_assignment, found.unavoidable_moves) == (2, 1)
    assert all(len(one.idle_members) == 2 and one.moved_partitions >= 1 for one in found.outcomes)


def test_without_the_fairest_assignment_only_score_and_excess_are_missing():
    """Sizes and moves do not need the fairest assignment."""
    spec = of_too_many_subscriptions()
    found = what_if(spec, {}, [BUILT_IN["range"]])
    assert (found.partitions, found.smallest_maximum, found.idle_in_any_assignment) == (600, None, None)
    for one in (measure_today(spec, {}), *found.outcomes):
        assert (one.score, one.excess_partitions) == (None, None)
    assert sum(found.outcomes[0].sizes) == 600


@pytest.mark.parametrize(
    ("spec", "held", "change", "members", "why"),
    [
        (FOUR, {}, Change(), ["A", "B"], "no change"),
        (FOUR, owners(B="t0 t1", A="t2"), Change(members=-1), ["A"], "B has most partitions, so it leaves"),
        (FOUR, owners(A="t0 t1", B="t2 t3"), Change(members=-1), ["A"], "equal: the last by id leaves"),
        (
            group({"t": 6}, A="t", B="t", C="t"),
            owners(A="t0 t1 t2", B="t3", C="t4 t5"),
            Change(members=-2),
            ["B"],
            "two leave: the two members with most partitions",
        ),
        (
            group({"t": 6}, A="t", B="t"),
            owners(A="t0", B="u0 u1 u2"),
            Change(members=-1),
            ["B"],
            "B does not subscribe to u, so its partitions of u do not count",
        ),
        (FOUR, {}, Change(members=2), ["A", "B", "~new-member-1", "~new-member-2"], "new members come last"),
        (
            group({"t": 1}, **{"~new-member-1": "t"}),
            {},
            Change(members=1),
            ["~new-member-1", "~new-member-2"],
            "the first name is in use, so the next one is taken",
        ),
    ],
)
def test_who_joins_and_who_leaves(
    spec: GroupSpec, held: dict[tuple[str, int], str], change: Change, members: list[str], why: str
):
    found = what_if(spec, held, [BUILT_IN["range"]], change)
    before = {member.member_id for member in spec.members}
    assert (found.joined, found.left) == (
        tuple(sorted(set(members) - before)),
        tuple(sorted(before - set(members))),
    ), why


@pytest.mark.parametrize(
    ("subscriptions", "expected", "why"),
    [
        ({"A": "t", "B": "u", "C": "u"}, ("u",), "the most common subscription"),
        ({"A": "ut", "B": "tu", "C": "v"}, ("t", "u"), "the order of topics does not matter"),
        ({"A": "t", "B": "u"}, ("u",), "equally common: the one with more partitions"),
        ({"A": "w", "B": "t"}, ("t",), "equally common, same partitions: the first by name"),
    ],
)
def test_what_a_new_member_subscribes_to(subscriptions: dict[str, str], expected: tuple[str, ...], why: str):
    spec = group({"t": 2, "u": 3, "v": 9, "w": 2}, **subscriptions)
    assert apply_change(spec, Change(members=1)).members[-1] == MemberSubscription("~new-member-1", expected), why


@pytest.mark.parametrize(
    ("spec", "change", "message"),
    [
        (FOUR, Change(members=-2), "2 of 2 members leave: no member is left"),
        (FOUR, Change(partitions={"t": 3}), "t has 4 partitions; topics do not shrink"),
        (FOUR, Change(partitions={"x": 3}), "no member subscribes to x"),
        (FOUR, Change(partitions={"t": 1_000_001}), "the group would have more than 1000000 partitions"),
        (FOUR, Change(members=99_999), "the group would have more than 100000 members"),
        (group({"t": 4}), Change(members=1), "the group has no members"),
        (group({"t": 4}), Change(), "the group has no members"),
    ],
)
def test_an_impossible_change_is_rejected_with_a_reason(spec: GroupSpec, change: Change, message: str):
    """Changes come from the command line. 100,000,000 partitions used all memory."""
    with pytest.raises(ImpossibleChangeError, match=message):
        what_if(spec, {}, [BUILT_IN["range"]], change)


def test_a_topic_that_does_not_exist_yet_can_be_tried():
    """A topic can have subscribers before it is created."""
    found = outcome(group({"t": 2}, A="tx", B="tx"), owners(A="t0", B="t1"), "range", Change(partitions={"x": 2}))
    assert (found.sizes, found.moved_partitions) == ((2, 2), 0)


def test_only_todays_owners_count_and_not_the_claims():
    """The claims of a classic member are from before the last rebalance."""
    claiming = replace(FOUR.members[1], owned=(("t", 0), ("t", 1)), generation_id=7)
    spec = GroupSpec((FOUR.members[0], claiming), FOUR.partitions)
    assert outcome(spec, ALL_ON_A, "sticky") == outcome(FOUR, ALL_ON_A, "sticky")


def test_a_users_strategy_is_computed_and_a_failing_one_reported():
    """The failure does not affect the other strategies."""
    first, second, third = what_if(FOUR, ALL_ON_A, [ToTheLast(), Failing(), BUILT_IN["range"]]).outcomes
    assert (first.strategy, first.sizes, first.moved_partitions, first.score) == ("to-the-last", (0, 4), 4, 0.0)
    assert second == FailedOutcome("failing", "raised", "KeyError: 2")
    assert third.strategy == "range"


def test_the_json_form_has_all_fields():
    """Scripts read the fields, the change in words, and the failures."""
    change = Change(members=-1, partitions={"t": 5})
    answer = json.loads(json.dumps(what_if_as_json(what_if(FOUR, ALL_ON_A, [BUILT_IN["range"], Failing()], change))))
    assert answer["change_in_words"] == "1 member fewer, t grows to 5 partitions"
    assert answer["change"] == {"members": -1, "partitions": {"t": 5}}
    assert (answer["left"], answer["joined"], answer["unavoidable_moves"]) == (["A"], [], 4)
    ranged, failed = answer["outcomes"]
    assert (ranged["strategy"], ranged["sizes"], ranged["topic_spread"]) == ("range", [5], {"t": 0})
    assert ranged["evenness"]["max_to_mean_ratio"] == 1.0
    assert failed == {"strategy": "failing", "reason": "raised", "detail": "KeyError: 1"}


@given(groups(), st.data())
def test_moves_agree_with_those_of_fewest_moves(spec: GroupSpec, data: st.DataObject):
    """Rule 4. `fewest_moves` compares the owners before and after."""
    if not spec.members:
        return
    possible_owners = [None, "gone", *(member.member_id for member in spec.members)]
    partitions = [(topic, number) for topic, count in spec.partitions.items() for number in range(count + 1)]
    held = {
        partition: owner
        for partition in partitions
        if (owner := data.draw(st.sampled_from(possible_owners))) is not None
    }
    for name in ("range", "roundrobin"):  # their results do not depend on owners
        counted = count_moves(held, spec, BUILT_IN[name].assign(spec))
        found = what_if(spec, held, [BUILT_IN[name]])
        assert found.outcomes[0].moved_partitions == counted.moved
        assert found.unavoidable_moves == counted.unavoidable


@given(groups(), st.sampled_from([*USUAL_CHANGES, Change(members=3)]))
def test_the_usual_changes_work_for_any_group(spec: GroupSpec, change: Change):
    """The group can have racks, static members, missing topics and any names. A change works or has an error text."""
    try:
        found = what_if(spec, {}, BUILT_IN.values(), change)
    except ImpossibleChangeError:
        assert len(spec.members) + change.members <= max(0, change.members)
        return
    assert found.members == len(spec.members) + change.members
    assert [one.strategy for one in found.outcomes] == list(BUILT_IN)
    for one in found.outcomes:
        assert one.score is not None
        assert 0 <= one.score <= 100
        assert len(one.idle_members) >= found.idle_in_any_assignment
        assert one.excess_partitions == one.sizes[-1] - found.smallest_maximum
