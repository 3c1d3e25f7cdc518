"""Tests of hot partitions, by the numbered rules of `topic_loads.py`."""

from __future__ import annotations

import doctest
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streaming.evaluation.lag.topic_loads
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.lag.lag_seconds import END_OFFSET_POINTS
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets
from streaming.evaluation.lag.topic_loads import TopicLoad, topic_loads
from streaming.events import TopicMetadata

MINUTE_MS = 60_000
ENDS_MS = (0, MINUTE_MS)


def loads(
    records_a_second: Mapping[str, Sequence[float | None]], counts: Mapping[str, int | None] | None = None
) -> Mapping[str, TopicLoad]:
    """Return the loads after one minute in which each partition received this number of records per second.

    A partition with None was not in the first sample. `counts` are the partition counts of the last sample.
    """
    ends = SampledOffsets(END_OFFSET_POINTS)
    rates = {(topic, at): rate for topic, of in records_a_second.items() for at, rate in enumerate(of)}
    for at_ms in ENDS_MS:
        sampled = {key: rate for key, rate in rates.items() if rate is not None or at_ms}
        ends.add({key: 1_000 + int((rate or 0) * at_ms / 1000) for key, rate in sampled.items()}, at_ms)
    shown = {topic: len(of) for topic, of in records_a_second.items()} if counts is None else counts
    topics = {topic: TopicMetadata(count, MINUTE_MS) for topic, count in shown.items()}
    return topic_loads(ends, ClusterSample(MINUTE_MS, topics))


@pytest.mark.parametrize(
    ("rates", "hottest", "share", "ratio", "is_hot", "why"),
    [
        ((900, 10, 10), 0, 900 / 920, 2.7 / 0.92, True, "4: the review's example, which no assignment can divide"),
        ((10, 10, 10, 10), 0, 0.25, 1.0, False, "4: all partitions receive equally many; the first is named"),
        ((5, 40, 40, 5), 1, 40 / 90, 160 / 90, True, "4: of two equally hot partitions, the first is named"),
        ((75, 25), 0, 0.75, 1.5, True, "5: with two partitions, 75 % is the limit"),
        ((74, 26), 0, 0.74, 1.48, False, "5: below the limit"),
        ((15, *[85 / 9] * 9), 0, 0.15, 1.5, True, "5: with ten partitions, 15 % is the limit"),
        ((300,), 0, 1.0, 1.0, False, "4: a single partition is not hot: it has no other partition to compare with"),
        ((3, 0, 0), 0, 1.0, 3.0, True, "4: partitions without records count in the mean"),
        ((1, 0), 0, 1.0, 2.0, True, "3: one record per second is enough"),
    ],
)
def test_the_share_of_the_hottest_partition(  # noqa: PLR0913, PLR0917 - a table of cases
    rates: Sequence[float], hottest: int, share: float, ratio: float, is_hot: bool, why: str
) -> None:
    load = loads({"orders": rates})["orders"]
    assert (load.partitions, load.hottest_partition, load.is_hot) == (len(rates), hottest, is_hot), why
    assert load.hottest_share == pytest.approx(share, abs=0.002), why
    assert load.max_to_mean_ratio == pytest.approx(ratio, abs=0.01), why


@pytest.mark.parametrize(
    ("rates", "counts", "why"),
    [
        ((0.5, 0), {"orders": 2}, "3: 30 records in a minute: the difference is accidental"),
        ((0, 0), {"orders": 2}, "3: no records, so the ratio would be 0 / 0"),
        ((90, None), {"orders": 2}, "2: a new partition, sampled once, so its rate is unknown"),
        ((90, 10), {"orders": 3}, "2: the third partition has no leader, so it has no end offset"),
        ((90, 10), {"orders": None}, "2: the topic was deleted"),
        ((90, 10), {}, "2: the last sample does not contain the topic"),
    ],
)
def test_an_unknown_load_has_no_entry(
    rates: Sequence[float | None], counts: Mapping[str, int | None], why: str
) -> None:
    assert loads({"orders": rates, "other": (7, 7)}, {**counts, "other": 2}).keys() == {"other"}, why


def test_partitions_of_an_earlier_topic_of_the_same_name_do_not_count() -> None:
    """Rule 2: the topic was created again with fewer partitions. The samples of the others stay for one day."""
    load = loads({"orders": (90, 10, 500)}, {"orders": 2})["orders"]
    assert (load.partitions, load.hottest_partition, load.produced_records_per_second) == (2, 0, 100)


def test_without_samples_nothing_is_known() -> None:
    assert topic_loads(SampledOffsets(END_OFFSET_POINTS), ClusterSample(0)) == {}


@given(st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(0, 1_000), min_size=1, max_size=9)))
def test_the_load_equals_a_plain_computation(rates: dict[str, list[int]]) -> None:
    expected = {
        topic: (sum(of), of.index(max(of)), max(of), max(of) / sum(of), max(of) * len(of) / sum(of))
        for topic, of in rates.items()
        if max(of) >= 1
    }
    found = {
        topic: (
            load.produced_records_per_second,
            load.hottest_partition,
            load.hottest_records_per_second,
            load.hottest_share,
            load.max_to_mean_ratio,
        )
        for topic, load in loads(rates).items()
    }
    assert found == {topic: pytest.approx(values) for topic, values in expected.items()}


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.evaluation.lag.topic_loads).failed == 0
