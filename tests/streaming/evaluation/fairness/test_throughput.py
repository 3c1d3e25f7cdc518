"""Records per second of topic partitions, from sampled end offsets: the numbers are the rules of `throughput`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.fairness.throughput import WINDOW_MS, end_offset_rates
from streaming.evaluation.lag.lag_seconds import END_OFFSET_POINTS
from streaming.evaluation.lag.sampled_offsets import SampledOffsets

ORDERS = ("orders", 0)
Samples = list[tuple[int, int]]


def sampled(samples: Samples, limit: int = END_OFFSET_POINTS) -> SampledOffsets:
    """Return the end offsets of one partition, given as (second, offset)."""
    ends = SampledOffsets(limit)
    for second, offset in samples:
        ends.add({ORDERS: offset}, second * 1000)
    return ends


@pytest.mark.parametrize(
    ("samples", "rate", "why"),
    [
        ([(0, 100), (10, 200)], 10.0, "2: two samples, ten seconds apart"),
        ([(0, 0), (30, 900), (60, 1_200)], 20.0, "2: the whole window"),
        ([(0, 0), (1_000, 500), (1_030, 560)], 2.0, "2: what was before the window is left out"),
        ([(0, 100), (40, 100), (50, 100), (60, 700)], 10.0, "2: flat since before the first sample in the window"),
        ([(0, 100), (900, 100), (1_000, 100)], 0.0, "2: flat for long is kept as two points, and is a rate of 0"),
        ([(0, 100), (900, 100), (1_000, 700)], None, "3: one sample in the window, and it is another than before"),
        ([(5, 100)], None, "3: a single sample ever"),
        ([(0, 100), (3_600, 900)], None, "3: after a restart: an hour's average is not the last minute's rate"),
        ([(0, 5_000), (10, 7)], None, "3: created anew, seen once since"),
        ([(0, 5_000), (10, 7), (20, 17)], 1.0, "3: created anew, seen twice since"),
    ],
)
def test_a_rate_is_told_from_the_window_or_not_at_all(samples: Samples, rate: float | None, why: str) -> None:
    """Rule: unknown is absent, never 0."""
    found = end_offset_rates(sampled(samples), samples[-1][0] * 1000)
    assert found == ({} if rate is None else {ORDERS: pytest.approx(rate)}), why


def test_what_the_last_sample_does_not_speak_of_has_no_rate() -> None:
    """Rule 1: its partition has no leader; how fast it grows now nobody knows."""
    ends = sampled([(0, 0), (10, 100)])
    ends.add({("orders", 1): 5}, 20_000)
    assert end_offset_rates(ends, 20_000) == {}


def test_nothing_sampled_has_no_rates() -> None:
    assert end_offset_rates(SampledOffsets(END_OFFSET_POINTS), 0) == {}


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 1_000)), min_size=2, max_size=40),
    st.sampled_from([3, 10, END_OFFSET_POINTS]),
)
def test_a_rate_is_finite_and_never_above_the_fastest_growth_that_was_sampled(steps: Samples, limit: int) -> None:
    """However points are thinned, the mean of a window lies between its slowest and its fastest part."""
    second, offset, samples = 0, 0, []
    for seconds, grown in steps:
        second, offset = second + seconds, offset + grown
        samples.append((second, offset))
    found = end_offset_rates(sampled(samples, limit), second * 1000, WINDOW_MS)
    for rate in found.values():
        assert 0 <= rate <= max(grown / seconds for seconds, grown in steps[1:]) + 1e-9
