"""The worst groups are shown in full: which they are must not change at every look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.severity.rank import HELD_MS, RankEntry, rank_entries
from streaming.evaluation.severity.trouble import Place

SCRAPE_MS = 15_000


def standing_at(group_id: str, rule: int, lag_seconds: float = 0.0) -> Place:
    """Return the place of a group with one trouble; rule 10 is none."""
    return (rule, -1 if rule < 10 else 0, -lag_seconds, 0, group_id)


def places(**troubles: int | tuple[int, float]) -> Mapping[str, Place]:
    """Return places of groups by rule, or by rule and lag in seconds."""
    return {name: standing_at(name, *((one,) if isinstance(one, int) else one)) for name, one in troubles.items()}


def shown(looks: Iterable[Mapping[str, Place]], most: int = 1, every_ms: int = SCRAPE_MS) -> list[list[str]]:
    """Return which groups are shown in full at each look."""
    held: Mapping[str, RankEntry] = {}
    found = []
    for number, look in enumerate(looks):
        ranked = rank_entries(look, held, number * every_ms)
        held = {group_id: ranked[group_id] for group_id in list(ranked)[:most]}
        found.append(sorted(held))
    return found


@pytest.mark.parametrize(
    ("looks", "expected", "why"),
    [
        ([places(a=2, b=5)], [["a"]], "rule 1"),
        ([places(a=5, b=10), places(a=5, b=2)], [["a"], ["b"]], "rule 1: worse trouble is seen at once"),
        ([places(a=8, b=10), places(a=10, b=9)], [["a"], ["a"]], "rule 2: it was worse than b is, minutes ago"),
        ([places(a=8, b=10), places(b=10)], [["a"], ["b"]], "rule 2: a group that is gone is held no longer"),
        (
            [places(a=(8, 40), b=(8, 39)), places(a=(8, 38), b=(8, 39)), places(a=(8, 40), b=(8, 39))],
            [["a"], ["a"], ["a"]],
            "rule 2: lag that wavers",
        ),
        ([places(a=(8, 40), b=(8, 39)), places(a=(8, 40), b=(8, 41))], [["a"], ["b"]], "it never was as bad as b is"),
    ],
)
def test_who_is_shown_in_full(looks: Sequence[Mapping[str, Place]], expected: list[list[str]], why: str) -> None:
    assert shown(looks) == expected, why


@pytest.mark.parametrize(
    ("later_ms", "expected", "why"),
    [
        (HELD_MS, "a", "rule 2: ten minutes are not over"),
        (HELD_MS + 1, "b", "rule 2: they are"),
        (-1, "b", "rule 3: a clock that was set back"),
    ],
)
def test_holding_ends(later_ms: int, expected: str, why: str) -> None:
    before = {"a": RankEntry(standing_at("a", 2), 0)}
    assert next(iter(rank_entries(places(a=10, b=9), before, later_ms))) == expected, why


def test_a_trouble_that_lasts_is_held_from_its_last_moment() -> None:
    """Rule 2: not from the first one, else a long storm would have no afterglow."""
    before = {"a": RankEntry(standing_at("a", 2), 0)}
    again = rank_entries(places(a=2, b=9), before, HELD_MS)
    assert again["a"].since_ms == HELD_MS


def test_a_status_that_comes_and_goes_at_every_sample_changes_the_view_once() -> None:
    """Burrow 738: one dip of the lag clears WARN, the next sample has it again."""
    looks = [places(a=8 if number % 2 else 10, b=8 if number % 2 == 0 else 10) for number in range(20)]
    found = shown(looks)
    assert sum(one != other for one, other in pairwise(found)) <= 1


troubled = st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(1, 10), st.floats(0, 100)))


@given(st.lists(troubled, max_size=12), st.integers(1, 4))
def test_asked_twice_of_the_same_the_answer_is_the_same(looks: list[dict[str, tuple[int, float]]], most: int) -> None:
    """Two Prometheus servers that scrape side by side see the same groups."""
    as_places = [places(**look) for look in looks]
    once = shown(as_places, most, every_ms=0)
    twice = shown([look for look in as_places for _ in range(2)], most, every_ms=0)
    assert twice == [one for one in once for _ in range(2)]


@given(troubled, troubled, st.integers(0, HELD_MS))
def test_every_group_stands_somewhere_and_nobody_better_than_where_it_is(
    before: dict[str, tuple[int, float]], now: dict[str, tuple[int, float]], later_ms: int
) -> None:
    """Holding hides no trouble: it only keeps groups where they were worse."""
    held = {name: RankEntry(standing_at(name, *one), 0) for name, one in before.items()}
    found = rank_entries(places(**now), held, later_ms)
    assert found.keys() == now.keys()
    assert [one.place for one in found.values()] == sorted(one.place for one in found.values())
    assert all(found[name].place <= place for name, place in places(**now).items())
