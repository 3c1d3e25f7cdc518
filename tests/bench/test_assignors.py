"""Tests that the benchmark of the strategies measures the groups of its table."""

from __future__ import annotations

import pytest

from assignors.sticky.sticky import StickyAssignor
from tests.bench.assignors import CASES, make_group, peak_mib, remove_one_member, report


def test_the_groups_have_the_sizes_of_the_table() -> None:
    """With smaller groups, the figures would be too good."""
    group = make_group(100, 1_000, 10, heterogeneous=False)
    assert (len(group.members), sum(group.partitions.values()), len(group.partitions)) == (100, 1_000, 10)
    assert {member.topics for member in group.members} == {tuple(group.partitions)}


def test_in_a_heterogeneous_group_each_member_subscribes_to_its_own_half() -> None:
    """The same in every run, so that figures can be compared."""
    group = make_group(100, 1_000, 10, heterogeneous=True)
    assert {len(set(member.topics)) for member in group.members} == {5}
    assert len({member.topics for member in group.members}) > 50
    assert group == make_group(100, 1_000, 10, heterogeneous=True)


def test_after_a_member_left_the_others_keep_their_partitions() -> None:
    """Without owned partitions it would be an assignment from scratch."""
    group = make_group(10, 100, 2, heterogeneous=False)
    left = remove_one_member(group, StickyAssignor().assign(group))
    assert [len(member.owned) for member in left.members] == [10] * 9


def test_the_table_has_a_line_for_each_strategy_with_target_and_javas_figure() -> None:
    """A figure without its target has no meaning."""
    head, *lines = report(sizes=((10, 100, 10),), max_runs=1)
    assert "10 x 100" in head
    assert [line.split(",")[0] for line in lines] == [name for case in CASES for name in case.strategies]
    assert "(2; 0.3)" in lines[0]


@pytest.mark.slow
def test_the_largest_group_fits_in_memory() -> None:
    """The target is 300 MB. An assignment needs only a small part of it."""
    assert peak_mib() < 100
