"""The benchmark measures what it says it measures."""

from __future__ import annotations

import pytest

from assignors.sticky.sticky import StickyAssignor
from tests.bench.assignors import CASES, group_of, peak_mib, report, without_one


def test_the_groups_have_the_sizes_of_the_table() -> None:
    """A smaller group would make fine figures."""
    group = group_of(100, 1_000, 10, heterogeneous=False)
    assert (len(group.members), sum(group.partitions.values()), len(group.partitions)) == (100, 1_000, 10)
    assert {member.topics for member in group.members} == {tuple(group.partitions)}


def test_in_a_heterogeneous_group_each_member_subscribes_to_its_own_half() -> None:
    """The same in every run, so that figures can be compared."""
    group = group_of(100, 1_000, 10, heterogeneous=True)
    assert {len(set(member.topics)) for member in group.members} == {5}
    assert len({member.topics for member in group.members}) > 50
    assert group == group_of(100, 1_000, 10, heterogeneous=True)


def test_when_one_left_the_others_own_what_they_had() -> None:
    """Otherwise it would be an assignment from scratch."""
    group = group_of(10, 100, 2, heterogeneous=False)
    left = without_one(group, StickyAssignor().assign(group))
    assert [len(member.owned) for member in left.members] == [10] * 9


def test_the_table_has_a_line_for_each_strategy_with_target_and_javas_figure() -> None:
    """Figures without their targets say nothing."""
    head, *lines = report(sizes=((10, 100, 10),), most_runs=1)
    assert "10 x 100" in head
    assert [line.split(",")[0] for line in lines] == [name for case in CASES for name in case.strategies]
    assert "(2; 0.3)" in lines[0]


@pytest.mark.slow
def test_the_largest_group_fits_in_memory() -> None:
    """300 MB was the promise; an assignment needs a small part of that."""
    assert peak_mib() < 100
