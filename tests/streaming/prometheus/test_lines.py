"""Tests that the monitor's fast writer gives exactly the text of prometheus-client."""

from __future__ import annotations

import doctest
from collections.abc import Mapping

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector

import streaming.prometheus.lines
from streaming.prometheus.exposition import exposition
from streaming.prometheus.lines import Sample, Writer, escape_labels
from streaming.signals import COUNTER, GAUGE, HISTOGRAM, Signal

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ['"', "\\", "\n", '\\n"', "", "%s"]
)
WHOLE = st.integers(-(2**62), 2**62) | st.integers(0, 10**7) | st.sampled_from([10**6 - 1, 10**6, 10**15 - 1, 10**15])
NUMBERS = st.floats(allow_nan=True) | WHOLE | st.booleans()
LABELS = st.sampled_from([(), ("group",), ("topic", "group"), ("cluster", "group", "Partition"), ("a", "cluster")])


class Families(Collector):
    """A collector of given families."""

    def __init__(self, *families: Metric) -> None:
        self._families = families

    def collect(self) -> tuple[Metric, ...]:
        """Return the families."""
        return self._families


def signal_of(kind: str, labels: tuple[str, ...], help_text: str) -> Signal:
    """Return a definition. The name of a counter ends in `_total`."""
    name = "rebalance_monitor_some" + ("_total" if kind == COUNTER else "")
    return Signal(name=name, kind=kind, unit="some", labels=labels, help=help_text, unknown="", example="")  # type: ignore[arg-type]


def library_families(signal: Signal, constant: Mapping[str, str], samples: list[Sample]) -> Families:
    """Return the same samples as values of prometheus-client."""
    family = Metric(signal.name.removesuffix("_total"), signal.help, signal.kind)
    own = [label for label in signal.labels if label not in constant]
    for sample in samples:
        names = (*own, "le") if sample.suffix == "_bucket" else own
        labels = {**constant, **dict(zip(names, sample.labels, strict=True))}
        family.add_sample(signal.name + sample.suffix, labels, sample.value)
    return Families(family)


@st.composite
def signals_with_samples(draw: st.DrawFn) -> tuple[Signal, Mapping[str, str], list[Sample]]:
    """Draw a gauge or a counter, its constant labels, and at least one sample."""
    labels = draw(LABELS)
    signal = signal_of(draw(st.sampled_from([GAUGE, COUNTER])), labels, draw(TEXTS))
    constant = {"cluster": draw(TEXTS)} if draw(st.booleans()) else {}
    own = [label for label in labels if label not in constant]
    values = draw(st.lists(st.tuples(*[TEXTS] * len(own)), min_size=1, max_size=4))
    return signal, constant, [Sample(value, draw(NUMBERS)) for value in values]


@given(signals_with_samples())
def test_samples_are_written_as_the_library_writes_them(one: tuple[Signal, Mapping[str, str], list[Sample]]) -> None:
    """Rules 1 to 3, in both formats, for any label and any number."""
    signal, constant, samples = one
    text = Writer(signal, constant).text(samples).encode()
    for encoder in (generate_latest, generate_openmetrics):
        assert b"".join(exposition([(signal, [text])], encoder)) == encoder(library_families(signal, constant, samples))


def test_a_histogram_is_written_as_the_library_writes_it() -> None:
    """Rule 1: buckets have the label `le`. Sum and count do not have it."""
    signal = signal_of(HISTOGRAM, ("cluster", "group"), "Sizes.")
    samples = [
        Sample(("g", "1.0"), 2, "_bucket"),
        Sample(("g", "+Inf"), 3, "_bucket"),
        Sample(("g",), 3, "_count"),
        Sample(("g",), 7.5, "_sum"),
    ]
    text = Writer(signal, {"cluster": "c"}).text(samples).encode()
    for encoder in (generate_latest, generate_openmetrics):
        assert b"".join(exposition([(signal, [text])], encoder)) == encoder(
            library_families(signal, {"cluster": "c"}, samples)
        )


ROWS = st.lists(
    st.tuples(TEXTS, st.integers(0, 2**31 - 1), st.none() | WHOLE.filter(lambda number: number < 2**63)), max_size=8
)


@given(ROWS)
def test_a_column_gives_the_same_text_as_its_rows_and_null_has_no_line(rows: list[tuple[str, int, int | None]]) -> None:
    """Tests rule 4."""
    signal = signal_of(GAUGE, ("cluster", "topic", "partition"), "Lag.")
    table = pa.table(list(zip(*rows, strict=True)) or [[], [], []], schema=SCHEMA)
    labels = {name: escape_labels(table[name]) for name in ("topic", "partition")}
    writer = Writer(signal, {"cluster": 'a "c"'})
    one_by_one = [Sample((topic, str(number)), value) for topic, number, value in rows if value is not None]
    lines = writer.column(labels, table["value"].combine_chunks())
    assert bytes(lines).decode() == writer.text(one_by_one)


SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("value", pa.int64())])


@given(st.lists(st.none() | st.floats()))
def test_a_column_of_floats_gives_the_same_text_as_its_rows(values: list[float | None]) -> None:
    writer = Writer(signal_of(GAUGE, (), "Seconds."), {})
    lines = writer.column({}, pa.array(values, pa.float64()))
    assert bytes(lines).decode() == writer.text([Sample((), value) for value in values if value is not None])


def test_text_that_utf8_cannot_encode_becomes_a_question_mark() -> None:
    """Rule 2: one name that cannot be encoded must not fail the whole scrape."""
    writer = Writer(signal_of(GAUGE, ("group",), "Lag."), {})
    assert writer.text([Sample(("bad\ud800",), 1)]) == 'rebalance_monitor_some{group="bad?"} 1.0\n'


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.prometheus.lines).failed == 0
