"""Tests of the groups that are shown in full detail: the worst ones, without a change at every sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.severity.rank import HELD_MS, RankEntry, rank_entries
from streaming.evaluation.severity.trouble import Place

SCRAPE_MS = 15_000


def place_of(group_id: str, rule: int, lag_seconds: float = 0.0) -> Place:
    """Return the rank entry of a group with one trouble. Rule 10 means no trouble."""
    return (rule, -1 if rule < 10 else 0, -lag_seconds, 0, group_id)


def places(**troubles: int | tuple[int, float]) -> Mapping[str, Place]:
    """Return rank entries of groups by rule, or by rule and lag in seconds."""
    return {name: place_of(name, *((one,) if isinstance(one, int) else one)) for name, one in troubles.items()}


def selected_groups(
    samples: Iterable[Mapping[str, Place]], most: int = 1, every_ms: int = SCRAPE_MS
) -> list[list[str]]:
    """Return the groups with full detail at each sample."""
    held: Mapping[str, RankEntry] = {}
    found = []
    for number, sample in enumerate(samples):
        ranked = rank_entries(sample, held, number * every_ms)
        held = {group_id: ranked[group_id] for group_id in list(ranked)[:most]}
        found.append(sorted(held))
    return found


@pytest.mark.parametrize(
    ("samples", "expected", "why"),
    [
        ([places(a=2, b=5)], [["a"]], "rule 1"),
        ([places(a=5, b=10), places(a=5, b=2)], [["a"], ["b"]], "rule 1: a worse trouble is shown at once"),
        ([places(a=8, b=10), places(a=10, b=9)], [["a"], ["a"]], "rule 2: minutes ago, a was worse than b is now"),
        ([places(a=8, b=10), places(b=10)], [["a"], ["b"]], "rule 2: a deleted group does not keep its place"),
        (
            [places(a=(8, 40), b=(8, 39)), places(a=(8, 38), b=(8, 39)), places(a=(8, 40), b=(8, 39))],
            [["a"], ["a"], ["a"]],
            "rule 2: the lag goes up and down",
        ),
        (
            [places(a=(8, 40), b=(8, 39)), places(a=(8, 40), b=(8, 41))],
            [["a"], ["b"]],
            "a was never as bad as b is now",
        ),
    ],
)
def test_groups_with_full_detail(samples: Sequence[Mapping[str, Place]], expected: list[list[str]], why: str) -> None:
    assert selected_groups(samples) == expected, why


@pytest.mark.parametrize(
    ("later_ms", "expected", "why"),
    [
        (HELD_MS, "a", "rule 2: the ten minutes are not over"),
        (HELD_MS + 1, "b", "rule 2: the ten minutes are over"),
        (-1, "b", "rule 3: a clock was set back"),
    ],
)
def test_a_group_keeps_its_place_for_a_limited_time(later_ms: int, expected: str, why: str) -> None:
    before = {"a": RankEntry(place_of("a", 2), 0)}
    assert next(iter(rank_entries(places(a=10, b=9), before, later_ms))) == expected, why


def test_a_long_trouble_keeps_its_place_from_its_last_moment() -> None:
    """Rule 2: the time starts at the last moment. Otherwise, a group would lose its place when a long storm ends."""
    before = {"a": RankEntry(place_of("a", 2), 0)}
    again = rank_entries(places(a=2, b=9), before, HELD_MS)
    assert again["a"].since_ms == HELD_MS


def test_a_status_that_changes_at_every_sample_changes_the_view_once() -> None:
    """Burrow 738: one lower lag clears WARN, and the next sample has WARN again."""
    samples = [places(a=8 if number % 2 else 10, b=8 if number % 2 == 0 else 10) for number in range(20)]
    found = selected_groups(samples)
    assert sum(one != other for one, other in pairwise(found)) <= 1


troubled = st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(1, 10), st.floats(0, 100)))


@given(st.lists(troubled, max_size=12), st.integers(1, 4))
def test_the_same_request_twice_gives_the_same_result(samples: list[dict[str, tuple[int, float]]], most: int) -> None:
    """Two Prometheus servers that scrape at the same time see the same groups."""
    as_places = [places(**sample) for sample in samples]
    once = selected_groups(as_places, most, every_ms=0)
    twice = selected_groups([sample for sample in as_places for _ in range(2)], most, every_ms=0)
    assert twice == [one for one in once for _ in range(2)]


@given(troubled, troubled, st.integers(0, HELD_MS))
def test_every_group_has_a_rank_and_none_is_better_than_its_present_trouble(
    before: dict[str, tuple[int, float]], now: dict[str, tuple[int, float]], later_ms: int
) -> None:
    """Keeping a place hides no trouble: it only ranks groups by their worse past."""
    held = {name: RankEntry(place_of(name, *one), 0) for name, one in before.items()}
    found = rank_entries(places(**now), held, later_ms)
    assert found.keys() == now.keys()
    assert [one.place for one in found.values()] == sorted(one.place for one in found.values())
    assert all(found[name].place <= place for name, place in places(**now).items())
