"""Text that is written quickly is the text prometheus-client writes, to the byte."""

from __future__ import annotations

import doctest
import gc
from collections.abc import Iterable, Sequence
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector

import streaming.sinks.exposition
from streaming.sinks.exposition import Encoder, exposition

VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(['"', "\\", "\n", '\\n"', ""])
NUMBERS = st.floats(allow_nan=True) | st.integers(-(10**9), 10**9) | st.booleans() | st.sampled_from([10**6 - 1, 10**6])
LABELS = st.sampled_from([(), ("group",), ("topic", "group"), ("cluster", "group", "Partition")])


class Families(Collector):
    """Some families."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Give them."""
        return self._families


@st.composite
def families(draw: st.DrawFn) -> Metric:
    """A gauge or a counter with any number of samples."""
    kind, labels, text = draw(st.sampled_from([GaugeMetricFamily, CounterMetricFamily])), draw(LABELS), draw(VALUES)
    family = kind("rebalance_monitor_some", text, labels=labels)
    for values in draw(st.lists(st.tuples(*[VALUES] * len(labels)), max_size=4)):
        family.add_metric(values, draw(NUMBERS))
    return family


ENCODERS = pytest.mark.parametrize("encoder", [generate_latest, generate_openmetrics])


@ENCODERS
@given(some=st.lists(families(), max_size=3))
def test_gauges_and_counters_are_written_as_the_library_writes_them(encoder: Encoder, some: list[Metric]) -> None:
    """Rules 1 and 2, in both formats."""
    assert exposition(Families(some), encoder) == encoder(Families(some))


@ENCODERS
def test_what_is_neither_is_left_to_the_library(encoder: Encoder) -> None:
    """Rule 3: a histogram, and a gauge with a time of its own."""
    timed = GaugeMetricFamily("timed", "With a time.", labels=("group",))
    timed.add_metric(("g",), 1, timestamp=12.5)
    histogram = HistogramMetricFamily("sizes", "Sizes.", buckets=[("1", 2), ("+Inf", 3)], sum_value=7)
    some = Families([timed, histogram])
    assert exposition(some, encoder) == encoder(some)


@pytest.mark.parametrize("fails", [False, True])
def test_garbage_collection_pauses_no_longer_than_a_scrape(*, fails: bool) -> None:
    """Rule 4: also after a scrape that failed."""
    seen = []

    class Watching(Collector):
        def collect(self) -> Iterable[Metric]:
            seen.append(gc.isenabled())
            if fails:
                raise OSError("no memory figures")
            yield GaugeMetricFamily("one", "The one.", value=1)

    with pytest.raises(OSError, match="no memory") if fails else nullcontext():
        exposition(Watching(), generate_latest)
    assert (seen, gc.isenabled()) == ([False], True)


def test_the_examples_hold() -> None:
    assert doctest.testmod(streaming.sinks.exposition).failed == 0
