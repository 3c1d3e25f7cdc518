"""Tests that every strategy keeps the rules of ``assignors/fairness/invariants.py`` in random groups."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import BUILT_IN
from assignors.fairness.invariants import violations
from assignors.fairness.measures import measure
from assignors.model import GroupSpec
from assignors.sticky.cooperative import CooperativeStickyAssignor, group_after_rejoin, rebalance_needed
from assignors.sticky.sticky import StickyAssignor
from assignors.uniform.uniform import UniformAssignor
from tests.assignors.groups import clean_groups, groups, with_claims
from tests.assignors.needless import needless_moves

STRATEGIES = pytest.mark.parametrize("strategy", list(BUILT_IN))
STICKY_AND_UNIFORM = pytest.mark.parametrize(
    "assignor", [StickyAssignor(), UniformAssignor()], ids=lambda found: found.name
)
MAX_ROUNDS = 8


@STRATEGIES
@given(group=groups())
def test_every_strategy_keeps_its_rules_in_any_group(strategy: str, group: GroupSpec):
    """The groups can have topics with fewer partitions than claimed, and conflicting claims."""
    answer = BUILT_IN[strategy].assign(group)
    assert violations(group, answer, strategy) == []
    assert needless_moves(group, answer, strategy) == 0


@STRATEGIES
@given(group=clean_groups())
def test_every_strategy_keeps_its_rules_without_conflicting_claims(strategy: str, group: GroupSpec):
    """Without conflicts, the rule of stickiness applies, too: no needless moves (KIP-54)."""
    answer = BUILT_IN[strategy].assign(group)
    assert violations(group, answer, strategy) == []
    assert needless_moves(group, answer, strategy) == 0


@STRATEGIES
@settings(max_examples=50)
@given(group=groups(), seed=st.integers())
def test_the_order_of_the_input_has_no_effect(strategy: str, group: GroupSpec, seed: int):
    """Java's result can depend on the order of members. Ours must not, so that results can be compared."""
    generator = random.Random(seed)
    members, topics = list(group.members), list(group.partitions)
    generator.shuffle(members)
    generator.shuffle(topics)
    shuffled = GroupSpec(tuple(members), {topic: group.partitions[topic] for topic in topics}, group.racks)
    assert BUILT_IN[strategy].assign(shuffled) == BUILT_IN[strategy].assign(group)


@STRATEGIES
@settings(max_examples=50)
@given(group=groups())
def test_every_member_has_a_sorted_entry(strategy: str, group: GroupSpec):
    """A member without partitions has an empty entry. So results can be compared by ==."""
    answer = BUILT_IN[strategy].assign(group)
    assert answer.members.keys() == {member.member_id for member in group.members}
    assert all(list(partitions) == sorted(partitions) for partitions in answer.members.values())


@STICKY_AND_UNIFORM
@given(group=groups(claims=False))
def test_a_group_in_which_nothing_changed_stays_as_it_is(assignor: StickyAssignor, group: GroupSpec):
    """KIP-54: a balanced assignment does not change. The group has no racks, because they are a separate reason."""
    plain = GroupSpec(group.members, group.partitions)
    answer = assignor.assign(plain)
    assert assignor.assign(with_claims(plain, dict(answer.members))) == answer


@STICKY_AND_UNIFORM
@given(group=groups(claims=False), data=st.data())
def test_a_member_that_leaves_moves_only_what_it_had(assignor: StickyAssignor, group: GroupSpec, data: st.DataObject):
    """With equal subscriptions, the other members keep their partitions and share the rest."""
    topics = tuple(sorted({topic for member in group.members for topic in member.topics}))
    plain = with_claims(GroupSpec(group.members, group.partitions), {})
    equal = _subscribed_to(plain, topics)
    owned = dict(assignor.assign(equal).members)
    if len(owned) < 2:
        return
    leaver = data.draw(st.sampled_from(sorted(owned)))
    del owned[leaver]
    stayed = tuple(member for member in equal.members if member.member_id != leaver)
    left = with_claims(GroupSpec(stayed, equal.partitions), owned)
    assert measure(left, assignor.assign(left)).moves == 0


@given(group=clean_groups())
def test_cooperative_moves_in_two_rounds_as_many_partitions_as_sticky_in_one(group: GroupSpec):
    """KIP-429: with equal subscriptions, the second round ends in a valid sticky assignment."""
    topics = tuple(sorted({topic for member in group.members for topic in member.topics}))
    equal = _subscribed_to(GroupSpec(group.members, group.partitions), topics)
    first = CooperativeStickyAssignor().assign(equal)
    second_group = group_after_rejoin(equal, first)
    second = CooperativeStickyAssignor().assign(second_group)
    assert violations(second_group, second, "sticky") == []
    assert needless_moves(second_group, second, "sticky") == 0
    assert not rebalance_needed(second_group, second)
    assert measure(equal, second).moves == measure(equal, StickyAssignor().assign(equal)).moves
    assert all(set(partitions) <= set(second.members[member_id]) for member_id, partitions in first.members.items())


@given(group=groups())
def test_cooperative_becomes_stable_after_a_few_rounds(group: GroupSpec):
    """After a few rounds all partitions are assigned, and no member must revoke any.

    The group has no racks. With racks, Java's algorithm and ours can revoke a partition again and again, if no near
    member can take it.
    """
    current = GroupSpec(group.members, group.partitions)
    for _ in range(MAX_ROUNDS):
        answer = CooperativeStickyAssignor().assign(current)
        again = rebalance_needed(current, answer)
        current = group_after_rejoin(current, answer)
        if not again:
            break
    assert not again
    assert violations(current, answer, "sticky") == []
    assert needless_moves(current, answer, "sticky") == 0


def _subscribed_to(group: GroupSpec, topics: tuple[str, ...]) -> GroupSpec:
    members = tuple(
        type(member)(member.member_id, topics, member.instance_id, None, member.owned, member.generation_id)
        for member in group.members
    )
    return GroupSpec(members, group.partitions)
