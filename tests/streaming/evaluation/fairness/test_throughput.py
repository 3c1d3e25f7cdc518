"""Tests for records per second of topic partitions. The numbers are the rules of `throughput`."""

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
        ([(0, 0), (1_000, 500), (1_030, 560)], 2.0, "2: samples before the window are ignored"),
        (
            [(0, 100), (40, 100), (50, 100), (60, 700)],
            10.0,
            "2: the offset is constant since before the window's first sample",
        ),
        (
            [(0, 100), (900, 100), (1_000, 100)],
            0.0,
            "2: a long constant section is kept as two points and gives a rate of 0",
        ),
        (
            [(0, 100), (900, 100), (1_000, 700)],
            None,
            "3: only one sample is in the window, and its offset differs from the previous one",
        ),
        ([(5, 100)], None, "3: there is only one sample"),
        ([(0, 100), (3_600, 900)], None, "3: after a restart, an hour's average is not the rate of the last minute"),
        ([(0, 5_000), (10, 7)], None, "3: the topic was recreated and sampled once since"),
        ([(0, 5_000), (10, 7), (20, 17)], 1.0, "3: the topic was recreated and sampled twice since"),
    ],
)
def test_a_rate_is_computed_from_the_window_or_absent(samples: Samples, rate: float | None, why: str) -> None:
    """An unknown rate is absent, never 0."""
    found = end_offset_rates(sampled(samples), samples[-1][0] * 1000)
    assert found == ({} if rate is None else {ORDERS: pytest.approx(rate)}), why


def test_a_partition_missing_in_the_last_sample_has_no_rate() -> None:
    """Rule 1: the partition has no leader, so its present rate is unknown."""
    ends = sampled([(0, 0), (10, 100)])
    ends.add({("orders", 1): 5}, 20_000)
    assert end_offset_rates(ends, 20_000) == {}


def test_nothing_sampled_has_no_rates() -> None:
    assert end_offset_rates(SampledOffsets(END_OFFSET_POINTS), 0) == {}


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 1_000)), min_size=2, max_size=40),
    st.sampled_from([3, 10, END_OFFSET_POINTS]),
)
def test_a_rate_is_finite_and_never_above_the_fastest_sampled_growth(steps: Samples, limit: int) -> None:
    """Thinning keeps the mean of a window between its slowest and its fastest part."""
    second, offset, samples = 0, 0, []
    for seconds, grown in steps:
        second, offset = second + seconds, offset + grown
        samples.append((second, offset))
    found = end_offset_rates(sampled(samples, limit), second * 1000, WINDOW_MS)
    for rate in found.values():
        assert 0 <= rate <= max(grown / seconds for seconds, grown in steps[1:]) + 1e-9
