"""Tests of two generations compared: members, partitions and moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.cli.text.past import lines_between
from streaming.events import STREAMS
from streaming.page.api.past_json import comparison_json
from streaming.page.past.views import CoveredCluster
from streaming.past import reader
from streaming.past.comparison import Comparison
from streaming.past.coverage import Coverage
from streaming.past.moments import Generation
from streaming.past.reader import PastReader
from streaming.protocol.classic import ClassicMember
from tests.streaming.groups import emptied, epoch, formed, joined, member, target_epoch, tombstoned, written
from tests.streaming.past.history import CLUSTER, write_life

A, B = member("a", {"orders": [0, 1]}), member("b", {"orders": [2, 3]})
ALL = member("a", {"orders": [0, 1, 2, 3]})
NEW = member("c", {"orders": [2, 3]})


def compared(folder: Path, one: int | Generation, other: int | Generation) -> Comparison:
    comparison = PastReader(str(folder), CLUSTER).compare("g", one, other)
    assert comparison is not None
    return comparison


def changes(comparison: Comparison) -> dict[str, tuple[tuple[str, ...], int, int]]:
    """Return the kinds of change, and the numbers of lost and gained partitions, of each member."""
    return {one.member_id: (one.changes, len(one.revoked or ()), len(one.assigned or ())) for one in comparison.changes}


@pytest.mark.parametrize(
    ("before", "after", "expected", "moved", "fewest"),
    [
        ([A, B], [ALL], {"a": ((), 0, 2), "b": (("gone",), 2, 0)}, 2, 2),  # a member left: all its partitions move
        ([ALL], [A, B], {"a": ((), 2, 0), "b": (("joined",), 0, 2)}, 2, 2),  # a member joined
        ([A, B], [A, NEW], {"b": (("gone",), 2, 0), "c": (("joined",), 0, 2)}, 2, 2),  # one replaces the other
        ([A, B], [A, B], {}, 0, 0),  # a rebalance without effect
        ([A, B], [member("a", {"orders": [2, 3]}), member("b", {"orders": [0, 1]})],
         {"a": ((), 2, 2), "b": ((), 2, 2)}, 4, 0),  # a needless swap
        ([A, B], [], {"a": (("gone",), 2, 0), "b": (("gone",), 2, 0)}, 0, 0),  # no owner, so no partition moved
    ],
)  # fmt: skip
def test_who_joined_and_left_and_what_had_to_move(  # noqa: PLR0913, PLR0917 - the columns of the table
    tmp_path: Path,
    before: list[ClassicMember],
    after: list[ClassicMember],
    expected: dict[str, tuple[tuple[str, ...], int, int]],
    moved: int,
    fewest: int,
) -> None:
    write_life(tmp_path, [written(10, 1, before), written(20, 2, after) if after else emptied(20, 2)])
    comparison = compared(tmp_path, Generation(1), Generation(2))
    assert changes(comparison) == expected
    assert (comparison.moved_partitions, comparison.fewest_moves) == (moved, fewest)


def test_the_numbers_of_two_successive_generations_are_those_of_the_rebalance(tmp_path: Path) -> None:
    """One truth: the table `rebalances` has the same numbers."""
    write_life(tmp_path, [written(10, 1, [A, B]), written(20, 2, [A, NEW]), written(30, 3, [ALL])])
    for generation in (1, 2):
        comparison = compared(tmp_path, Generation(generation), Generation(generation + 1))
        (row,) = comparison.rebalances
        assert (comparison.moved_partitions, comparison.fewest_moves, comparison.is_exact) == (
            row["moved_partitions"],
            row["fewest_moves"],
            row["fewest_is_exact"],
        )


def test_moments_and_generations_can_be_mixed_in_any_order(tmp_path: Path) -> None:
    write_life(tmp_path, [written(10, 1, [A, B]), written(20, 2, [A]), written(30, 3, [ALL])])
    forward = compared(tmp_path, 15_000, Generation(3))
    assert (forward.before.generation_id, forward.after.generation_id) == (1, 3)
    assert [row["generation_id"] for row in forward.rebalances] == [3, 2]
    backward = compared(tmp_path, Generation(3), 15_000)
    assert (backward.before, backward.after, backward.changes) == (forward.before, forward.after, forward.changes)


def test_a_generation_that_no_row_has_cannot_be_compared(tmp_path: Path) -> None:
    write_life(tmp_path, [written(10, 1, [A, B])])
    reader = PastReader(str(tmp_path), CLUSTER)
    assert reader.compare("g", Generation(1), Generation(7)) is None
    assert reader.compare("g", 9_999, Generation(1)) is None
    assert reader.compare("nobody", Generation(1), Generation(1)) is None


def test_the_moves_of_a_group_with_unreadable_members_are_unknown(tmp_path: Path) -> None:
    """The monitor could not decode the assignment of one member. Its partitions are unknown, not none."""
    unreadable = ClassicMember(
        member_id="b",
        group_instance_id=None,
        client_id="client-b",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=300_000,
        session_timeout_ms=45_000,
        subscription=B.subscription,
        assignment=None,
    )
    write_life(tmp_path, [written(10, 1, [A, B]), written(20, 2, [A, unreadable])])
    comparison = compared(tmp_path, Generation(1), Generation(2))
    assert (comparison.moved_partitions, comparison.fewest_moves) == (None, None)


def test_the_changed_partitions_of_streams_members_are_unknown_and_not_none(tmp_path: Path) -> None:
    """KIP-1071: the records contain tasks. Before, a new member had gained 0 partitions."""
    second = [joined(10, "n", group_type=STREAMS), epoch(11, 4, STREAMS), target_epoch(12, 4, STREAMS)]
    write_life(tmp_path, [*formed(1, group_type=STREAMS), *second])
    comparison = compared(tmp_path, Generation(3), Generation(4))
    assert [(one.member_id, one.changes, one.revoked, one.assigned) for one in comparison.changes] == [
        ("n", ("joined",), None, None)
    ]
    document = comparison_json(CoveredCluster(CLUSTER, Coverage(None, None)), "g", comparison)
    assert document["changes"][0]["revoked"] is None
    lines = list(lines_between(str(tmp_path), None, "g", ["3", "4"], as_json=False))
    assert "member client@127.0.0.1: joined; lost and gained partitions unknown" in lines


def test_the_generation_of_a_group_that_was_created_again_is_the_later_one(tmp_path: Path) -> None:
    write_life(tmp_path, [written(10, 1, [A]), tombstoned(20), written(30, 1, [B])])
    comparison = compared(tmp_path, Generation(1), 15_000)
    assert (comparison.before.record_timestamp_ms, comparison.after.record_timestamp_ms) == (10_000, 30_000)


@pytest.mark.parametrize(("first", "generations", "has_more"), [(1, [5, 4, 3], True), (2, [5, 4, 3], False)])
def test_a_comparison_shows_that_it_does_not_contain_all_rebalances(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int, generations: list[int], *, has_more: bool
) -> None:
    """A rebalance storm: a comparison of generations 1 and 151 contained the last 100 rebalances without a notice."""
    monkeypatch.setattr(reader, "MAX_COMPARED_REBALANCES", 3)
    write_life(tmp_path, [written(10 * number, number, [A, B] if number % 2 else [ALL]) for number in range(1, 7)])
    comparison = compared(tmp_path, Generation(first), Generation(5))
    assert [row["generation_id"] for row in comparison.rebalances] == generations
    document = comparison_json(CoveredCluster(CLUSTER, Coverage()), "g", comparison)
    assert (comparison.has_more_rebalances, document["has_more_rebalances"]) == (has_more, has_more)
    lines = list(lines_between(str(tmp_path), CLUSTER, "g", (str(first), "5"), as_json=False))
    assert ("more rebalances happened between the two generations; only the latest are shown" in lines) == has_more
