"""The map shows who holds how much; a number in it is a number of partitions."""

from __future__ import annotations

import doctest
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

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
    """Return a member that shall have `target`; what it has is that too unless told otherwise."""
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
    found = heat_map([member(name, of, ["t"]) for name, of in held.items()])
    for row in found.rows:
        assert sum(cell.partitions for cell in row.cells if cell) == row.partitions
    for column, (_, partitions) in enumerate(found.topics):
        assert sum(cell.partitions for row in found.rows if (cell := row.cells[column])) == partitions


@given(HELD)
def test_more_is_never_paler_and_only_nothing_has_no_colour(held: dict[str, list[tuple[str, int]]]) -> None:
    """Rule 3."""
    found = heat_map([member(name, of) for name, of in held.items()])
    cells = sorted((cell.partitions, cell.level) for row in found.rows for cell in row.cells if cell)
    assert [level for _, level in cells] == sorted(level for _, level in cells)
    assert all((level == 0) == (partitions == 0) and 0 <= level <= LEVELS for partitions, level in cells)
    if cells and cells[-1][0]:
        assert cells[-1][1] == LEVELS


def test_the_busiest_member_and_the_widest_topic_come_first() -> None:
    """Rule 2."""
    found = heat_map([member("a", [("u", 0)]), member("c", [("t", 0), ("u", 1)]), member("b", [("u", 2), ("u", 3)])])
    assert [row.name for row in found.rows] == ["b", "c", "a"]
    assert found.topics == (("u", 4), ("t", 1))


def test_what_a_member_has_until_it_is_reconciled_stands_beside_what_it_shall_have() -> None:
    """Rule 1, KIP-848."""
    (row,) = heat_map([member("a", [("t", 0), ("t", 1)], assigned=[("t", 0)])]).rows
    assert [(cell.partitions, cell.gets, cell.gives_up) for cell in row.cells if cell] == [(2, 1, 0), (0, 0, 0)]
    (row,) = heat_map([member("a", [("t", 0)], assigned=None)]).rows
    assert row.cells[0] is not None
    assert (row.cells[0].gets, row.cells[0].gives_up) == (0, 0), "no record told what it has"


def test_a_member_that_swaps_one_partition_for_one_is_shown_to_do_so() -> None:
    """The cell said "1→1": which partitions differ could not be seen."""
    assert not heat_map([member("a", [("t", 2)])]).is_reconciling
    found = heat_map([member("a", [("t", 2)], assigned=[("t", 5)])])
    assert found.is_reconciling
    (row,) = found.rows
    assert row.cells[0] is not None
    assert (row.cells[0].partitions, row.cells[0].numbers) == (1, "2")
    assert (row.cells[0].gets, row.cells[0].gets_numbers) == (1, "2")
    assert (row.cells[0].gives_up, row.cells[0].gives_up_numbers) == (1, "5")


def test_a_topic_nobody_of_them_subscribes_to_has_no_cell_unless_it_was_given_all_the_same() -> None:
    """Rule 5: an unlawful assignment is what somebody looks for here."""
    a, b = heat_map([member("a", [("u", 0)], ["t"]), member("b", [], ["t"])]).rows
    assert [cell and cell.partitions for cell in a.cells] == [1, 0]
    assert [cell and cell.partitions for cell in b.cells] == [None, 0]


def test_lag_is_the_sum_of_what_a_member_reads_and_unknown_where_one_is_unknown() -> None:
    held = [("t", 0), ("t", 1)]
    for lag, expected in (
        ({("t", 0): 3, ("t", 1): 4}, 7),
        ({("t", 0): 3}, None),
        ({("t", 0): 3, ("t", 1): None}, None),
    ):
        assert heat_map([member("a", held)], lag=lag).rows[0].lag == expected
    assert heat_map([member("a", [])], lag={}).rows[0].lag == 0, "who reads nothing is not behind"
    assert heat_map([member("a", None)], lag={}).rows[0].lag is None


def test_too_many_members_and_topics_are_counted() -> None:
    """Rule 4: a group of a thousand members is still a page."""
    topics = [f"topic-{number}" for number in range(MAX_TOPICS + 3)]
    found = heat_map([member(f"m-{number}", [], topics) for number in range(MAX_MEMBERS + 5)])
    assert (len(found.rows), found.left_out_members) == (MAX_MEMBERS, 5)
    assert (len(found.topics), found.left_out_topics) == (MAX_TOPICS, 3)


@given(st.lists(st.integers(0, 60), unique=True))
def test_ranges_name_every_number_once(numbers: list[int]) -> None:
    spelled: list[int] = []
    for part in filter(None, in_ranges(sorted(numbers)).split(",")):
        first, _, last = part.partition("-")
        spelled += range(int(first), int(last or first) + 1)
    assert spelled == sorted(numbers)


def test_what_the_docstrings_show_is_true() -> None:
    assert doctest.testmod(streaming.page.heat_map).failed == 0
