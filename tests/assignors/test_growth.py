"""Work grows with a group's size, not with its square. What is counted is steps, so a busy machine changes nothing."""

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
"""Members, partitions, topics: eight times the group."""

GROWTH = LARGE[0] / SMALL[0]


class _Name(str):
    """A name whose comparisons are steps, too: `in` on a list would be a single one otherwise."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    def __lt__(self, other: str) -> bool:
        return str.__lt__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


def steps(work: Callable[[], object]) -> int:
    """How many lines of Python run, each turn of a loop anew."""
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


def named(group: GroupSpec) -> GroupSpec:
    """The same group, of names whose comparisons are counted."""
    topics = {topic: _Name(topic) for topic in group.partitions}
    members = (
        replace(
            member,
            member_id=_Name(member.member_id),
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


def of_size(case: Case, size: tuple[int, int, int]) -> GroupSpec:
    """The benchmark's group for a case."""
    group = make_group(*size, heterogeneous=case.heterogeneous)
    return named(remove_one_member(group, assignor_named("sticky").assign(group)) if case.one_left else group)


@pytest.mark.parametrize(
    ("case", "strategy"),
    [(case, strategy) for case in CASES for strategy in case.strategies],
    ids=lambda it: it.label if isinstance(it, Case) else it,
)
def test_eight_times_the_group_is_not_sixty_four_times_the_work(case: Case, strategy: str):
    """A quadratic step takes minutes at a thousand members. Twice the growth leaves room for sorting."""
    assignor = assignor_named(strategy)
    small, large = (of_size(case, size) for size in (SMALL, LARGE))
    assert steps(lambda: assignor.assign(large)) < 2 * GROWTH * steps(lambda: assignor.assign(small))


@pytest.mark.parametrize(
    "one_of_each",
    [
        lambda names: [left for left in names for right in names if left is right],
        lambda names: [name for name in names if names.index(name) >= 0],
    ],
    ids=["a loop in a loop", "a search in a list"],
)
def test_the_count_sees_a_quadratic_step(one_of_each: Callable[[list[str]], object]):
    """Also one that is hidden in a single call."""
    small, large = ([_Name(f"member-{number}") for number in range(size[0])] for size in (SMALL, LARGE))
    assert steps(lambda: one_of_each(large)) > 4 * GROWTH * steps(lambda: one_of_each(small))
