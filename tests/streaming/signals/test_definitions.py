"""Tests that every definition follows the rules of `streaming/signals/signal.py`."""

from __future__ import annotations

import doctest
import pkgutil
import re
from dataclasses import replace
from importlib import import_module

import pytest

import streaming.signals
from streaming.evaluation.assignment import drift
from streaming.evaluation.conditions import silence
from streaming.evaluation.conditions.commit_gaps import LONG_COMMIT_GAP
from streaming.evaluation.conditions.missing_topics import SUBSCRIBED_TOPIC_MISSING
from streaming.evaluation.conditions.reconciliation import STUCK_RECONCILIATION
from streaming.evaluation.fairness import imbalance, participants
from streaming.evaluation.lag import lag
from streaming.evaluation.lag.status import Status
from streaming.evaluation.rebalances import condition_detectors, rebalances
from streaming.evaluation.rebalances.rebalance_history import UNKNOWN_CAUSE
from streaming.group import not_known
from streaming.group.listing import GROUP_TYPES
from streaming.run.samples.lag.retention_settings import OFFSETS_RETENTION, TOPIC_RETENTION
from streaming.signals import COUNTER, FAMILY_SETS, GRANULARITIES, HISTOGRAM, OWN, SIGNALS, Signal, exported_names
from streaming.signals import fairness as of_fairness
from streaming.signals import groups as of_groups
from streaming.signals import lag as of_lag
from streaming.signals import monitor as of_monitor
from streaming.signals import partitions as of_partitions
from streaming.signals import rebalances as of_rebalances
from tests.promql import names_in_query

EACH = pytest.mark.parametrize("signal", SIGNALS.values(), ids=list(SIGNALS))
ONE_MEMBER_OF_A_GROUP = (of_fairness.BUSIEST_MEMBER, of_lag.GROUP_WORST_PARTITION_INFO, of_lag.GROUP_LAG_CAUSE_INFO)
"""One series per group, and only if an alert uses it."""
UNITS = ("seconds", "bytes", "ratio", "partitions", "members", "brokers")
BY_EXPORTED_NAME = {name: signal for signal in SIGNALS.values() for name in exported_names(signal)}


def test_label_values_are_read_only() -> None:
    """Two signals can be defined with the same dict. A change of one signal would change the other one."""
    values = {"condition": ("storm",)}
    signal = replace(of_rebalances.GROUP_CONDITION, label_values=values)
    values["condition"] = ()
    assert signal.label_values == {"condition": ("storm",)}
    with pytest.raises(TypeError):
        signal.label_values["condition"] = ()  # type: ignore[index]


def test_every_definition_is_in_the_catalogue_once() -> None:
    """Two signals of one name would be exported twice. A signal that is not listed would not be documented."""
    defined = [
        value
        for module in pkgutil.iter_modules(streaming.signals.__path__)
        for value in vars(import_module(f"streaming.signals.{module.name}")).values()
        if isinstance(value, Signal)
    ]
    assert sorted(signal.name for signal in defined) == sorted(SIGNALS)


@EACH
def test_a_name_shows_the_type_of_the_metric(signal: Signal) -> None:
    """Rule 1: users apply rate() to names that end in `_total`. A gauge with such a name would mislead them."""
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)+", signal.name)
    assert signal.name.endswith("_total") == (signal.kind == COUNTER)
    if signal.family_set == OWN:
        assert signal.name.startswith("rebalance_monitor_")
        assert not signal.name.endswith(("_bucket", "_sum", "_count")), "these suffixes are for histograms"
    else:
        assert signal.name.startswith("kafka_")


@EACH
def test_a_name_that_ends_in_a_unit_is_in_that_unit(signal: Signal) -> None:
    """Tests rule 2."""
    last = signal.name.removesuffix("_total").rpartition("_")[2]
    assert last not in UNITS or signal.unit == last
    assert signal.unit == "boolean" or not signal.help.startswith("1 ")


@EACH
def test_labels_are_unique_and_fit_the_granularity(signal: Signal) -> None:
    """Rule 3. The id of a member changes at every start, so only the granularity `member` has it as a label."""
    assert len(set(signal.labels)) == len(signal.labels)
    assert signal.label_values.keys() <= set(signal.labels)
    assert all(len(set(values)) == len(values) > 0 for values in signal.label_values.values())
    member_labels = {
        "member",
        "member_id",
        "consumer_id",
        "group_instance_id",
        "client_id",
        "client_host",
        "member_host",
    }
    if signal not in ONE_MEMBER_OF_A_GROUP:
        assert bool(member_labels & set(signal.labels)) == (signal.granularity == "member")
    assert signal.granularity in GRANULARITIES
    assert signal.family_set in FAMILY_SETS
    if signal not in (*ONE_MEMBER_OF_A_GROUP, of_partitions.TOPIC_HOTTEST_PARTITION_RATIO):  # one of each topic
        assert ("partition" in signal.labels) <= (signal.granularity in {"partition", "cluster"})
    assert (signal.granularity == "topic") <= ("topic" in signal.labels)


@EACH
def test_help_texts_exist_and_fit_into_one_line(signal: Signal) -> None:
    """Tests rule 4."""
    for words in (signal.help, signal.unknown):
        assert words.strip() == words
        assert words.endswith((".", "..."))
        assert "\n" not in words


@EACH
def test_an_example_queries_the_metric_and_uses_only_defined_names(signal: Signal) -> None:
    """Rule 5: with an example that returns nothing, the metric looks useless."""
    query = names_in_query(signal.example)
    assert query.metrics & set(exported_names(signal))
    assert query.metrics <= BY_EXPORTED_NAME.keys()
    signals = [BY_EXPORTED_NAME[name] for name in query.metrics]
    known = {label for one in signals for label in one.labels} | {"le" for one in signals if one.kind == HISTOGRAM}
    assert query.labels <= known


CAUSES = {
    rebalances.STRATEGY_CHANGED,
    rebalances.MEMBER_GONE,
    rebalances.MEMBER_JOINED,
    rebalances.SUBSCRIPTION_CHANGED,
    rebalances.METADATA_CHANGED,
    rebalances.COOPERATIVE_FOLLOWUP,
    rebalances.UNEXPLAINED,
    UNKNOWN_CAUSE,
}
CONDITIONS = {
    condition_detectors.ROLLING_RESTART,
    condition_detectors.REBALANCE_STORM,
    condition_detectors.FLAPPING_MEMBER,
    condition_detectors.ENDLESS_COOPERATIVE_REJOIN,
    condition_detectors.EAGER_AND_COOPERATIVE_MIXED,
    condition_detectors.DUPLICATE_CLAIMS,
    condition_detectors.SUBSCRIPTION_MISMATCH,
    condition_detectors.UNOWNED_PARTITIONS,
    silence.STUCK_REBALANCE,
    silence.SILENT_GROUP,
    silence.SILENT_STATIC_MEMBER,
    STUCK_RECONCILIATION,
    LONG_COMMIT_GAP,
    SUBSCRIBED_TOPIC_MISSING,
}
VERDICTS = {
    drift.MATCH,
    drift.DRIFT,
    drift.EQUIVALENT,
    drift.WITHHELD,
    drift.DIFFERS_FROM_JAVA,
    drift.REBALANCING,
    drift.UNKNOWN,
    drift.NOT_EVALUATED,
}


@pytest.mark.parametrize(
    ("signal", "label", "defined_values"),
    [
        (of_rebalances.REBALANCES_BY_CAUSE, "cause", CAUSES),
        (of_rebalances.GROUP_CONDITION, "condition", CONDITIONS),
        (of_fairness.ASSIGNMENT_VERDICT, "verdict", VERDICTS),
        (of_fairness.IMBALANCE_SCORE, "measure", {imbalance.PARTITIONS, imbalance.LAG, imbalance.THROUGHPUT}),
        (of_fairness.IMBALANCE_SCORE, "scope", {participants.MEMBER, participants.HOST}),
        (of_fairness.WORK_IMBALANCE_RATIO, "measure", {imbalance.LAG, imbalance.THROUGHPUT}),
        (of_lag.LAG_UNKNOWN_PARTITIONS, "reason", {*lag._SAMPLE_REASONS, lag.MAYBE_ONLY_MARKERS}),
        (of_lag.GROUP_STATUS, "status", {status.name for status in Status}),
        (of_groups.GROUP_INFO, "group_type", set(GROUP_TYPES)),
        (
            of_monitor.SOURCE_LIMITATION,
            "capability",
            {*not_known.POLLED, not_known.HIDDEN_GROUPS, OFFSETS_RETENTION, TOPIC_RETENTION},
        ),
    ],
)
def test_the_values_of_a_label_are_those_of_the_evaluation(
    signal: Signal, label: str, defined_values: set[str]
) -> None:
    """Rule 3: if an alert uses a value that the evaluation never returns, the alert never fires."""
    assert set(signal.label_values[label]) == defined_values


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.signals.signal).failed == 0
