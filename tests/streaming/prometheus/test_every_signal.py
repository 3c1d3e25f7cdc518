"""Tests that the series of a scrape and the definitions of signals agree in both directions."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families as parse_text

from streaming.prometheus.metrics import Exporter
from streaming.signals import COUNTER, SIGNALS, exported_names
from tests.streaming.http.answers import answer
from tests.streaming.page.scene import CLUSTER, NOW_MS
from tests.streaming.prometheus.everything import STALE_AFTER_MS, everything


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> list[Metric]:
    """Return the families of a scrape with every metric."""
    tables: Path = tmp_path_factory.mktemp("tables")
    exporter = Exporter([(CLUSTER, everything(tables))], lambda: NOW_MS, STALE_AFTER_MS)
    return list(parse_text(answer(exporter)))


def test_every_defined_metric_is_exported_and_every_exported_metric_is_defined(families: list[Metric]) -> None:
    """A documented metric that does not exist, or an undocumented metric, misleads users."""
    shown = {sample.name for family in families for sample in family.samples}
    assert shown == {name for signal in SIGNALS.values() for name in exported_names(signal)}


def test_every_sample_has_the_labels_that_are_defined(families: list[Metric]) -> None:
    """A query with a wrong label name returns nothing, and Prometheus reports no error."""
    signal_by_name = {name: signal for signal in SIGNALS.values() for name in exported_names(signal)}
    for sample in (sample for family in families for sample in family.samples):
        labels = (*signal_by_name[sample.name].labels, *(["le"] if sample.name.endswith("_bucket") else []))
        assert sample.labels.keys() == set(labels), sample.name


def test_every_label_with_defined_values_has_one_of_them(families: list[Metric]) -> None:
    for signal in SIGNALS.values():
        for sample in (sample for family in families for sample in family.samples if sample.name == signal.name):
            for label, values in signal.label_values.items():
                assert sample.labels[label] in values, sample


def test_every_family_has_the_defined_type_and_help_text(families: list[Metric]) -> None:
    for family in families:
        signal = SIGNALS[f"{family.name}_total" if family.type == COUNTER else family.name]
        assert (family.type, family.documentation) == (signal.kind, signal.help)
