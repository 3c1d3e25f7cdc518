"""Tests of the heat map, which shows the number of partitions of each member and topic."""

from __future__ import annotations

import doctest
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import streaming.page.heat_map
from streaming.group.members import GroupMember
from streaming.group.printable import in_ranges
from streaming.page.heat_map import LEVELS, MAX_MEMBERS, MAX_TOPICS, heat_map


def member(
    name: str,
    target: Sequence[tuple[str, int]] | None,
    topics: Sequence[str] = ("t", "u"),
    assigned: Sequence[tuple[str, int]] | None = (),
) -> GroupMember:
    """Return a member with this target. By default, its assigned partitions equal the target."""
    now = target if assigned == () else assigned
    return GroupMember(
        member_id=f"{name}-id",
        group_instance_id=name,
        client_id="app",
        client_host="/h",
        rack_id=None,
        subscribed_topics=tuple(topics),
        subscribed_regex=None,
        member_epoch=None,
        owned=None,
        assigned=None if now is None else tuple(now),
        target=None if target is None else tuple(target),
        pending_revocation=(),
    )


HELD = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.lists(st.tuples(st.sampled_from(["t", "u", "v"]), st.integers(0, 9)), unique=True, max_size=12),
    min_size=1,
)


@given(HELD)
def test_cells_add_up_to_their_row_and_their_topic(held: dict[str, list[tuple[str, int]]]) -> None:
    heat = heat_map([member(name, of, ["t"]) for name, of in held.items()])
    for row in heat.rows:
        assert sum(cell.partitions for cell in row.cells if cell) == row.partitions
    for column, (topic, partitions) in enumerate(heat.topics):
        numbers = [number for of in held.values() for name, number in of if name == topic]
        assert sum(cell.partitions for row in heat.rows if (cell := row.cells[column])) == len(numbers)
        assert partitions == len(set(numbers)), "a partition that two members share counts once"


@given(HELD)
def test_more_partitions_never_have_a_lighter_colour_and_only_zero_has_none(
    held: dict[str, list[tuple[str, int]]],
) -> None:
    """Tests rule 3."""
    heat = heat_map([member(name, of) for name, of in held.items()])
    cells = sorted((cell.partitions, cell.level) for row in heat.rows for cell in row.cells if cell)
    assert [level for _, level in cells] == sorted(level for _, level in cells)
    assert all((level == 0) == (partitions == 0) and 0 <= level <= LEVELS for partitions, level in cells)
    if cells and cells[-1][0]:
        assert cells[-1][1] == LEVELS


def test_a_partition_that_members_share_counts_once_in_its_topic() -> None:
    """KIP-932: before, the page showed four partitions for two members that share two partitions."""
    shared = [("t", 0), ("t", 1)]
    heat = heat_map([member("a", shared, ["t"]), member("b", shared, ["t"])])
    assert heat.topics == (("t", 2),)
    assert [cell and cell.partitions for row in heat.rows for cell in row.cells] == [2, 2]


def test_the_busiest_member_and_the_widest_topic_come_first() -> None:
    """Tests rule 2."""
    heat = heat_map([member("a", [("u", 0)]), member("c", [("t", 0), ("u", 1)]), member("b", [("u", 2), ("u", 3)])])
    assert [row.name for row in heat.rows] == ["b", "c", "a"]
    assert heat.topics == (("u", 4), ("t", 1))


def test_a_member_that_is_not_reconciled_shows_current_and_target_partitions() -> None:
    """Tests rule 1, for KIP-848."""
    (row,) = heat_map([member("a", [("t", 0), ("t", 1)], assigned=[("t", 0)])]).rows
    assert [(cell.partitions, cell.gets, cell.gives_up) for cell in row.cells if cell] == [(2, 1, 0), (0, 0, 0)]
    (row,) = heat_map([member("a", [("t", 0)], assigned=None)]).rows
    assert row.cells[0] is not None
    assert (row.cells[0].gets, row.cells[0].gives_up) == (0, 0), "the current partitions of the member are unknown"


def test_a_member_that_swaps_one_partition_shows_both_partitions() -> None:
    """The cell once showed only "1→1", and the numbers of the different partitions were not visible."""
    assert not heat_map([member("a", [("t", 2)])]).is_reconciling
    heat = heat_map([member("a", [("t", 2)], assigned=[("t", 5)])])
    assert heat.is_reconciling
    (row,) = heat.rows
    assert row.cells[0] is not None
    assert (row.cells[0].partitions, row.cells[0].numbers) == (1, "2")
    assert (row.cells[0].gets, row.cells[0].gets_numbers) == (1, "2")
    assert (row.cells[0].gives_up, row.cells[0].gives_up_numbers) == (1, "5")


def test_a_partition_that_a_member_must_still_revoke_is_a_partition_that_it_gives_up() -> None:
    """KIP-848: the coordinator moves the partition from assigned to pending. The heat map showed "1" without -1.

    A partition that the member must revoke and then receives again is only a partition that it still receives.
    """
    revoking = replace(member("a", [("t", 0)]), pending_revocation=(("t", 1), ("old", 0)))
    heat = heat_map([revoking], lag={("t", 0): 1, ("t", 1): 2, ("old", 0): 4})
    assert heat.is_reconciling
    (row,) = heat.rows
    found = {topic: cell for (topic, _), cell in zip(heat.topics, row.cells, strict=True)}
    assert [
        cell and (cell.partitions, cell.gets, cell.gives_up_numbers) for cell in (found["t"], found["u"], found["old"])
    ] == [(1, 0, "1"), (0, 0, ""), (0, 0, "0")]
    assert row.lag == 7
    (row,) = heat_map([replace(member("a", [("t", 0)]), assigned=(), pending_revocation=(("t", 0),))]).rows
    assert [cell and (cell.gets_numbers, cell.gives_up) for cell in row.cells] == [("0", 0), ("", 0)]


def test_a_topic_that_nobody_reads_any_more_is_shown_until_its_partitions_are_released() -> None:
    """KIP-848: the member has a new subscription, but still has partitions of the old topic."""
    heat = heat_map([member("a", [("new", 0)], ["new"], assigned=[("new", 0), ("old", 0), ("old", 1)])])
    assert heat.topics == (("new", 1), ("old", 0))
    assert heat.is_reconciling
    (row,) = heat.rows
    assert [cell and (cell.partitions, cell.gives_up_numbers) for cell in row.cells] == [(1, ""), (0, "0-1")]


def test_a_topic_without_subscription_has_no_cell_unless_it_was_assigned() -> None:
    """Rule 5: users look here for assignments that break the rules."""
    a, b = heat_map([member("a", [("u", 0)], ["t"]), member("b", [], ["t"])]).rows
    assert [cell and cell.partitions for cell in a.cells] == [1, 0]
    assert [cell and cell.partitions for cell in b.cells] == [None, 0]


def test_a_members_lag_is_the_sum_of_its_partitions_and_unknown_if_one_is_unknown() -> None:
    held = [("t", 0), ("t", 1)]
    for lag, expected in (
        ({("t", 0): 3, ("t", 1): 4}, 7),
        ({("t", 0): 3}, None),
        ({("t", 0): 3, ("t", 1): None}, None),
    ):
        assert heat_map([member("a", held)], lag=lag).rows[0].lag == expected
    assert heat_map([member("a", [])], lag={}).rows[0].lag == 0, "a member without partitions has no lag"
    assert heat_map([member("a", None)], lag={}).rows[0].lag is None


def test_members_and_topics_above_the_limit_are_only_counted() -> None:
    """Rule 4: a group of a thousand members still fits on a page."""
    topics = [f"topic-{number}" for number in range(MAX_TOPICS + 3)]
    heat = heat_map([member(f"m-{number}", [], topics) for number in range(MAX_MEMBERS + 5)])
    assert (len(heat.rows), heat.left_out_members) == (MAX_MEMBERS, 5)
    assert (len(heat.topics), heat.left_out_topics) == (MAX_TOPICS, 3)


@given(st.lists(st.integers(0, 60), unique=True))
def test_ranges_name_every_number_once(numbers: list[int]) -> None:
    listed_numbers: list[int] = []
    for part in filter(None, in_ranges(sorted(numbers)).split(",")):
        first, _, last = part.partition("-")
        listed_numbers += range(int(first), int(last or first) + 1)
    assert listed_numbers == sorted(numbers)


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.page.heat_map).failed == 0
