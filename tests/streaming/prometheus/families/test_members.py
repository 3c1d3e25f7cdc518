"""Tests of the metrics of each member's actual and expected partitions, compared with the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.samples import Sample

from streaming.config.names import NameFilter
from streaming.evaluation.assignment.drift import DRIFT
from streaming.evaluation.lag.lag import LogEnds
from streaming.page.group import group_detail
from streaming.page.page_input import WatchedCluster
from streaming.prometheus.metric_selection import EVERYTHING, ExportOptions, MetricSelection
from streaming.prometheus.metrics import Exporter
from streaming.signals.members import MEMBER_EXPECTED_PARTITIONS, MEMBER_LAG, MEMBER_PARTITIONS
from streaming.state.monitor_state import MonitorState
from tests.streaming.groups import epoch, joined, member, sampled, target, target_epoch, written
from tests.streaming.http.answers import answer
from tests.streaming.page.scene import CLUSTER, NOW_MS, scene
from tests.streaming.prometheus.test_metrics import monitor_state_of, record

STALE_AFTER_MS = 60_000


@pytest.fixture(scope="module")
def monitor_state(tmp_path_factory: pytest.TempPathFactory) -> MonitorState:
    tables: Path = tmp_path_factory.mktemp("tables")
    return scene(tables).monitor_state


def samples_of(
    monitor_state: MonitorState, name: str, shown: ExportOptions = EVERYTHING, now_ms: int = NOW_MS
) -> list[Sample]:
    """Return the samples of one metric."""
    text = answer(Exporter([(CLUSTER, monitor_state)], lambda: now_ms, STALE_AFTER_MS, shown))
    return [sample for family in parse_text(text) for sample in family.samples if sample.name == name]


def by_member(samples: Iterable[Sample], group: str) -> dict[str, float]:
    """Return the sum over topics for each member of the group."""
    sums: Counter[str] = Counter()
    for sample in samples:
        if sample.labels["group"] == group:
            sums[sample.labels["member"]] += int(sample.value)
    return dict(sums)


def test_actual_and_expected_partitions_of_members_are_those_of_the_page(monitor_state: MonitorState) -> None:
    """The metrics and the page must not show different owners."""
    actual, expected, lag = (
        samples_of(monitor_state, one.name) for one in (MEMBER_PARTITIONS, MEMBER_EXPECTED_PARTITIONS, MEMBER_LAG)
    )
    watched, verdicts = WatchedCluster(CLUSTER, monitor_state.view(), NOW_MS, STALE_AFTER_MS), set()
    for group_id in monitor_state.view().alive_groups():
        detail, group = group_detail(watched, group_id), group_id.encode(errors="replace").decode()
        assert detail is not None
        rows = detail.heat_map.rows
        assert by_member(actual, group) == {row.member_id: row.partitions for row in rows}
        assert by_member(expected, group) == {row.member_id: row.expected for row in rows if row.expected is not None}
        assert by_member(lag, group) == {row.member_id: row.lag for row in rows if row.lag is not None}
        verdicts.add(detail.group.assignment.verdict)
    assert DRIFT in verdicts, "the scene has a group with drift"


def test_a_member_series_has_all_identifiers_of_the_member() -> None:
    """The id of a static member changes at every start. Its instance id stays the same."""
    held = [member("m-1", {"orders": [0, 1]}, instance_id="pod-0"), member("m-2")]
    monitor_state = monitor_state_of([record("g", [written(5, 3, held), sampled(9_000, orders=3)])])
    samples = samples_of(monitor_state, MEMBER_PARTITIONS.name, now_ms=1_000_000)
    labels = {"cluster": CLUSTER, "group": "g", "client_host": "/127.0.0.1", "topic": "orders"}
    assert [(one.labels, one.value) for one in samples] == [
        ({**labels, "member": "m-1", "group_instance_id": "pod-0", "client_id": "client-m-1"}, 2),
        ({**labels, "member": "m-2", "group_instance_id": "", "client_id": "client-m-2"}, 0),
    ]


def test_a_member_whose_partitions_are_unknown_has_no_series() -> None:
    """KIP-848: the member's target is known, and its current partitions are not. An unknown value is never 0."""
    events = [joined(0), epoch(1), target(2), target_epoch(3), sampled(9_000, orders=3)]
    monitor_state = monitor_state_of([record("g", events)])
    assert samples_of(monitor_state, MEMBER_PARTITIONS.name, now_ms=1_000_000) == []
    assert samples_of(monitor_state, MEMBER_LAG.name, now_ms=1_000_000) == []


def test_a_denied_topic_is_left_out_of_shares_but_not_of_a_members_lag(
    monitor_state: MonitorState,
) -> None:
    shown = ExportOptions(MetricSelection(topics=NameFilter(deny="orders")))
    before, after = (samples_of(monitor_state, MEMBER_PARTITIONS.name, one) for one in (EVERYTHING, shown))
    assert after == [sample for sample in before if sample.labels["topic"] != "orders"] != before
    assert samples_of(monitor_state, MEMBER_LAG.name, shown) == samples_of(monitor_state, MEMBER_LAG.name)


def test_members_of_a_group_blocked_by_an_open_transaction_have_no_series(monitor_state: MonitorState) -> None:
    """The current members are unknown, because an open transaction may hide newer records."""
    view, blocked_state = monitor_state.view(), MonitorState()
    assert view.sample is not None
    ends = dict.fromkeys(view.sample.offsets_topic, LogEnds(10, 5))
    blocked_state._view = replace(view, sample=replace(view.sample, offsets_topic=ends))
    for one in (MEMBER_PARTITIONS, MEMBER_EXPECTED_PARTITIONS, MEMBER_LAG):
        assert samples_of(monitor_state, one.name)
        assert samples_of(blocked_state, one.name) == []


def test_without_a_fresh_sample_members_have_no_series(monitor_state: MonitorState) -> None:
    """Rule 2 of `metrics`: the cluster is not ready."""
    later_ms = NOW_MS + STALE_AFTER_MS + 1
    for one in (MEMBER_PARTITIONS, MEMBER_EXPECTED_PARTITIONS, MEMBER_LAG):
        assert samples_of(monitor_state, one.name, now_ms=later_ms) == []
