"""What the definitions say is what a scrape shows, and the other way round."""

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
    """Return what a scrape of everything shows."""
    tables: Path = tmp_path_factory.mktemp("tables")
    exporter = Exporter([(CLUSTER, everything(tables))], lambda: NOW_MS, STALE_AFTER_MS)
    return list(parse_text(answer(exporter)))


def test_every_metric_that_is_defined_is_exported_and_the_other_way_round(families: list[Metric]) -> None:
    """A metric that is documented and never there, or there and not documented, sends somebody the wrong way."""
    shown = {sample.name for family in families for sample in family.samples}
    assert shown == {name for signal in SIGNALS.values() for name in exported_names(signal)}


def test_every_sample_has_the_labels_that_are_defined(families: list[Metric]) -> None:
    """A query by another name of a label selects nothing, and says nothing."""
    of_a_name = {name: signal for signal in SIGNALS.values() for name in exported_names(signal)}
    for sample in (sample for family in families for sample in family.samples):
        labels = (*of_a_name[sample.name].labels, *(["le"] if sample.name.endswith("_bucket") else []))
        assert sample.labels.keys() == set(labels), sample.name


def test_every_label_of_which_all_values_are_known_has_one_of_them(families: list[Metric]) -> None:
    for signal in SIGNALS.values():
        for sample in (sample for family in families for sample in family.samples if sample.name == signal.name):
            for label, values in signal.label_values.items():
                assert sample.labels[label] in values, sample


def test_every_family_is_of_the_kind_and_has_the_words_that_are_defined(families: list[Metric]) -> None:
    for family in families:
        signal = SIGNALS[f"{family.name}_total" if family.type == COUNTER else family.name]
        assert (family.type, family.documentation) == (signal.kind, signal.help)
