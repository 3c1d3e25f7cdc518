"""Tests that assigning the heaviest partitions first is valid, close to the best, and independent of input order."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from assignors.fairness.fairest import fairest_sizes
from assignors.fairness.heaviest_first import heaviest_first_loads
from assignors.model import GroupSpec, MemberSubscription
from assignors.subscriptions import partitions_of, subscription_classes
from tests.assignors.brute_force import small_groups, valid_assignments


def draw_weights(data: st.DataObject, group: GroupSpec) -> dict[tuple[str, int], int]:
    topics = subscription_classes(group).subscribers
    partitions = [found for topic in topics for found in partitions_of(topic, group.partition_count(topic))]
    return {partition: data.draw(st.integers(0, 20)) for partition in partitions}


@given(small_groups(), st.data())
def test_its_loads_are_those_of_a_valid_assignment(group: GroupSpec, data: st.DataObject):
    """Otherwise the monitor would report a difference that no assignment can remove."""
    weights = draw_weights(data, group)
    reached = {
        tuple(sorted(sum(weights[partition] for partition in held) for held in assignment.members.values()))
        for assignment in valid_assignments(group)
    }
    assert heaviest_first_loads(group, weights) in reached


@given(st.integers(1, 4), st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_its_busiest_member_has_at_most_a_third_more_than_the_best(members: int, loads: list[int]):
    """Graham 1969: the factor is at most 4/3 - 1/(3n), if all members have equal subscriptions."""
    group = GroupSpec(tuple(MemberSubscription(f"c{number}", ("t",)) for number in range(members)), {"t": len(loads)})
    weights = {("t", number): load for number, load in enumerate(loads)}
    best = min(
        max(sum(weights[partition] for partition in held) for held in assignment.members.values())
        for assignment in valid_assignments(group)
    )
    assert 3 * members * max(heaviest_first_loads(group, weights)) <= (4 * members - 1) * best


@given(st.integers(1, 8), st.integers(0, 20))
def test_equal_weights_are_assigned_evenly(members: int, partitions: int):
    """Applies to equal subscriptions. With different subscriptions, the result may be less even."""
    group = GroupSpec(tuple(MemberSubscription(f"c{number}", ("t",)) for number in range(members)), {"t": partitions})
    assert heaviest_first_loads(group, dict.fromkeys(partitions_of("t", partitions), 1)) == fairest_sizes(group)


@given(small_groups(), st.data(), st.integers())
def test_the_order_of_the_input_has_no_effect(group: GroupSpec, data: st.DataObject, seed: int):
    """Two monitors must show the same score."""
    weights = draw_weights(data, group)
    members, topics = list(group.members), list(group.partitions)
    generator = random.Random(seed)
    generator.shuffle(members)
    generator.shuffle(topics)
    shuffled = GroupSpec(tuple(members), {topic: group.partitions[topic] for topic in topics})
    assert heaviest_first_loads(shuffled, weights) == heaviest_first_loads(group, weights)
