"""Tests that the work of a strategy grows linearly with the size of the group.

The tests count steps and not time, so a busy machine has no effect.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from assignors import assignor_named
from assignors.model import GroupSpec
from tests.bench.assignors import CASES, Case, make_group, remove_one_member

SMALL, LARGE = (25, 250, 10), (200, 2_000, 10)
"""Sizes in members, partitions and topics. The large group has eight times the members and partitions."""

GROWTH = LARGE[0] / SMALL[0]


class _CountedName(str):
    """A name whose comparisons count as steps. Otherwise `in` on a list would be one step."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    def __lt__(self, other: str) -> bool:
        return str.__lt__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


def steps(work: Callable[[], object]) -> int:
    """Return the number of executed lines of Python, including repetitions."""
    count = 0

    def on_event(_frame: FrameType, _event: str, _argument: object) -> Callable[..., Any]:
        nonlocal count
        count += 1
        return on_event

    before = sys.gettrace()
    sys.settrace(on_event)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def with_counted_names(group: GroupSpec) -> GroupSpec:
    """Return the same group with names whose comparisons are counted."""
    topics = {topic: _CountedName(topic) for topic in group.partitions}
    members = (
        replace(
            member,
            member_id=_CountedName(member.member_id),
            topics=tuple(topics[topic] for topic in member.topics),
            owned=tuple((topics[topic], partition) for topic, partition in member.owned),
        )
        for member in group.members
    )
    return replace(
        group,
        members=tuple(members),
        partitions={topics[topic]: partitions for topic, partitions in group.partitions.items()},
    )


def group_of_case(case: Case, size: tuple[int, int, int]) -> GroupSpec:
    """Return the benchmark's group for a case."""
    group = make_group(*size, heterogeneous=case.heterogeneous)
    return with_counted_names(
        remove_one_member(group, assignor_named("sticky").assign(group)) if case.one_left else group
    )


@pytest.mark.parametrize(
    ("case", "strategy"),
    [(case, strategy) for case in CASES for strategy in case.strategies],
    ids=lambda it: it.label if isinstance(it, Case) else it,
)
def test_eight_times_the_group_is_not_sixty_four_times_the_work(case: Case, strategy: str):
    """A quadratic step takes minutes with a thousand members. The factor 2 leaves room for sorting."""
    assignor = assignor_named(strategy)
    small, large = (group_of_case(case, size) for size in (SMALL, LARGE))
    assert steps(lambda: assignor.assign(large)) < 2 * GROWTH * steps(lambda: assignor.assign(small))


@pytest.mark.parametrize(
    "one_of_each",
    [
        lambda names: [left for left in names for right in names if left is right],
        lambda names: [name for name in names if names.index(name) >= 0],
    ],
    ids=["nested loop", "search in a list"],
)
def test_the_count_sees_a_quadratic_step(one_of_each: Callable[[list[str]], object]):
    """A quadratic step can be hidden in a single call."""
    small, large = ([_CountedName(f"member-{number}") for number in range(size[0])] for size in (SMALL, LARGE))
    assert steps(lambda: one_of_each(large)) > 4 * GROWTH * steps(lambda: one_of_each(small))
