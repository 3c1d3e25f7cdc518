"""Tests of the rows of members: three members, 300 members, restarts, and members that are not known."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.page.timeline.history import Band, Generation, Holding, MemberRows, Span
from streaming.page.timeline.member_rows import MAX_ROWS, OTHER_MEMBERS, member_rows
from streaming.page.timeline.window import Window

WINDOW = Window(0, 3_600_000)
MINUTE = 60_000


def pod(name: str, partitions: int | None, host: str = "/10.0.0.1", member_id: str = "") -> Holding:
    return Holding(member_id or f"{name}-id", name, host, partitions)


def at(minute: int, *members: Holding) -> Generation:
    return Generation(minute * MINUTE, members)


def bands(rows: MemberRows) -> Mapping[str, list[tuple[int, int, int | None]]]:
    """Return the bands by row, with times in minutes."""
    return {
        row.name: [(band.from_ms // MINUTE, band.to_ms // MINUTE, band.partitions) for band in row.bands]
        for row in rows.rows
    }


def test_a_member_that_leaves_has_no_band_until_it_returns() -> None:
    generations = [at(-90, pod("a", 2), pod("b", 2)), at(20, pod("a", 4)), at(40, pod("a", 2), pod("b", 2))]
    assert bands(member_rows(generations, WINDOW)) == {
        "a": [(0, 20, 2), (20, 40, 4), (40, 60, 2)],
        "b": [(0, 20, 2), (40, 60, 2)],
    }


def test_a_member_that_keeps_its_partitions_has_one_band() -> None:
    """A rebalance that moves nothing is a mark, and not a change of the members."""
    generations = [at(-90, pod("a", 2)), at(20, pod("a", 2)), at(40, pod("a", 2))]
    assert bands(member_rows(generations, WINDOW)) == {"a": [(0, 60, 2)]}


def test_after_a_restart_a_member_is_in_the_same_row() -> None:
    """Rule 1: a client gets a new member id at each start. Twelve restarts must not be twelve rows."""
    generations = [at(5 * number, pod("a", 2, member_id=f"id-{number}")) for number in range(12)]
    assert bands(member_rows(generations, WINDOW)) == {"a": [(0, 60, 2)]}


def test_members_with_the_same_name_have_own_rows() -> None:
    """Rule 1: librdkafka's default client id is the same for each process of a host."""
    members = [pod("rdkafka", 3, member_id="rdkafka-1111111"), pod("rdkafka", 4, member_id="rdkafka-2222222")]
    assert bands(member_rows([at(-5, *members)], WINDOW)) == {
        "rdkafka …1111111": [(0, 60, 3)],
        "rdkafka …2222222": [(0, 60, 4)],
    }


def test_more_members_than_rows_are_grouped_by_host() -> None:
    """Rule 2."""
    members = [pod(f"a-{number}", 2, host=f"/10.0.0.{number % 3}") for number in range(30)]
    rows = member_rows([at(-5, *members), at(30, *members[3:])], WINDOW)
    assert not rows.is_by_member
    assert bands(rows) == {f"10.0.0.{number}": [(0, 30, 20), (30, 60, 18)] for number in range(3)}


def test_300_members_on_100_hosts_show_the_hosts_that_changed() -> None:
    """Rule 3: with 300 members, the host that died must not be among the other members."""
    members = [pod(f"a-{number}", 1, host=f"/host-{number % 100}") for number in range(300)]
    rows = member_rows([at(-5, *members), at(30, *(one for one in members if one.host != "/host-77"))], WINDOW)
    assert not rows.is_by_member
    assert len(rows.rows) == MAX_ROWS
    assert rows.rows[-1].name == OTHER_MEMBERS
    assert bands(rows)["host-77"] == [(0, 30, 3)]
    assert bands(rows)[OTHER_MEMBERS] == [(0, 60, 300 - 3 * (MAX_ROWS - 1))]


def test_unknown_partitions_are_not_zero() -> None:
    generations = [at(-5, pod("a", None), pod("b", 0))]
    assert bands(member_rows(generations, WINDOW)) == {"a": [(0, 60, None)], "b": [(0, 60, 0)]}


def test_a_host_with_one_unknown_member_is_unknown() -> None:
    members = [pod(f"a-{number}", None if number == 4 else 1, host=f"/h-{number % 2}") for number in range(20)]
    assert bands(member_rows([at(-5, *members)], WINDOW)) == {"h-0": [(0, 60, None)], "h-1": [(0, 60, 10)]}


def test_times_without_known_members_are_marked() -> None:
    """Rule 5: the log starts in the window, and records are missing later."""
    generations = [at(10, pod("a", 2)), Generation(30 * MINUTE, None), at(40, pod("a", 2))]
    rows = member_rows(generations, WINDOW)
    assert bands(rows) == {"a": [(10, 30, 2), (40, 60, 2)]}
    assert rows.unknown == (Span(0, 10 * MINUTE), Span(30 * MINUTE, 40 * MINUTE))


def test_a_group_without_records_has_unknown_members() -> None:
    """A group that only commits offsets (Flink, Spark) has no record with members."""
    assert member_rows([], WINDOW) == MemberRows((), (Span(0, WINDOW.to_ms),))


def test_an_empty_group_has_no_members_and_this_is_known() -> None:
    assert member_rows([at(-5)], WINDOW) == MemberRows()


holdings = st.builds(
    Holding, st.sampled_from("uvwxyz"), st.sampled_from("abc"), st.just("/h"), st.none() | st.integers(0, 9)
)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.builds(
            Generation,
            st.integers(-WINDOW.to_ms, WINDOW.to_ms),
            st.none() | st.lists(holdings, max_size=5, unique_by=lambda one: one.name).map(tuple),
        ),
        max_size=10,
        unique_by=lambda one: WINDOW.column(one.at_ms),
    )
)
def test_at_each_time_the_bands_show_the_last_generation(generations: list[Generation]) -> None:
    ordered = sorted(generations, key=lambda one: one.at_ms)
    rows = member_rows(ordered, WINDOW)
    for minute in range(60):
        at_ms = minute * MINUTE + 30_500
        before = [one for one in ordered if one.at_ms <= at_ms]
        expected = {} if not before else {one.name: one.partitions for one in before[-1].members or ()}
        shown = {row.name: band.partitions for row in rows.rows for band in row.bands if _is_in(band, at_ms)}
        assert shown == expected
        is_unknown = not before or before[-1].members is None
        if is_unknown:
            assert any(one.from_ms <= at_ms <= one.to_ms for one in rows.unknown)


def _is_in(band: Band, at_ms: int) -> bool:
    return band.from_ms <= at_ms < band.to_ms
