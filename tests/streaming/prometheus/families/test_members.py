"""Who owns what, and who should: as the page has it."""

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
from streaming.page.watched import WatchedCluster
from streaming.prometheus.metric_selection import EVERY_METRIC, MetricSelection
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


def reported(
    monitor_state: MonitorState, name: str, shown: MetricSelection = EVERY_METRIC, now_ms: int = NOW_MS
) -> list[Sample]:
    """Return the samples of one metric."""
    text = answer(Exporter([(CLUSTER, monitor_state)], lambda: now_ms, STALE_AFTER_MS, shown))
    return [sample for family in parse_text(text) for sample in family.samples if sample.name == name]


def by_member(found: Iterable[Sample], group: str) -> dict[str, float]:
    """Return sums over topics."""
    sums: Counter[str] = Counter()
    for sample in found:
        if sample.labels["group"] == group:
            sums[sample.labels["member"]] += int(sample.value)
    return dict(sums)


def test_members_have_and_should_have_what_the_page_says(monitor_state: MonitorState) -> None:
    """Two answers to "who owns what" would be one too many."""
    has, should, lag = (
        reported(monitor_state, one.name) for one in (MEMBER_PARTITIONS, MEMBER_EXPECTED_PARTITIONS, MEMBER_LAG)
    )
    watched, verdicts = WatchedCluster(CLUSTER, monitor_state.view(), NOW_MS, STALE_AFTER_MS), set()
    for group_id in monitor_state.view().alive_groups():
        detail, group = group_detail(watched, group_id), group_id.encode(errors="replace").decode()
        assert detail is not None
        rows = detail.heat_map.rows
        assert by_member(has, group) == {row.member_id: row.partitions for row in rows}
        assert by_member(should, group) == {row.member_id: row.expected for row in rows if row.expected is not None}
        assert by_member(lag, group) == {row.member_id: row.lag for row in rows if row.lag is not None}
        verdicts.add(detail.group.assignment.verdict)
    assert DRIFT in verdicts, "some group has members that should have something else"


def test_a_member_is_told_by_all_that_it_goes_by() -> None:
    """A static member's id is another at every start, its instance id stays."""
    held = [member("m-1", {"orders": [0, 1]}, instance_id="pod-0"), member("m-2")]
    monitor_state = monitor_state_of([record("g", [written(5, 3, held), sampled(9_000, orders=3)])])
    found = reported(monitor_state, MEMBER_PARTITIONS.name, now_ms=1_000_000)
    labels = {"cluster": CLUSTER, "group": "g", "client_host": "/127.0.0.1", "topic": "orders"}
    assert [(one.labels, one.value) for one in found] == [
        ({**labels, "member": "m-1", "group_instance_id": "pod-0", "client_id": "client-m-1"}, 2),
        ({**labels, "member": "m-2", "group_instance_id": "", "client_id": "client-m-2"}, 0),
    ]


def test_a_member_of_which_no_record_tells_what_it_has_has_no_series() -> None:
    """KIP-848: its target is known, what it holds is not. Never a 0 for an unknown."""
    events = [joined(0), epoch(1), target(2), target_epoch(3), sampled(9_000, orders=3)]
    monitor_state = monitor_state_of([record("g", events)])
    assert reported(monitor_state, MEMBER_PARTITIONS.name, now_ms=1_000_000) == []
    assert reported(monitor_state, MEMBER_LAG.name, now_ms=1_000_000) == []


def test_a_topic_that_was_not_asked_for_is_left_out_of_shares_but_not_of_a_members_lag(
    monitor_state: MonitorState,
) -> None:
    shown = MetricSelection(topics=NameFilter(deny="orders"))
    before, after = (reported(monitor_state, MEMBER_PARTITIONS.name, one) for one in (EVERY_METRIC, shown))
    assert after == [sample for sample in before if sample.labels["topic"] != "orders"] != before
    assert reported(monitor_state, MEMBER_LAG.name, shown) == reported(monitor_state, MEMBER_LAG.name)


def test_nothing_is_told_of_members_behind_an_open_transaction(monitor_state: MonitorState) -> None:
    """Who is a member now nobody knows: the record that says so may be held back."""
    view, held = monitor_state.view(), MonitorState()
    assert view.sample is not None
    ends = dict.fromkeys(view.sample.offsets_topic, LogEnds(10, 5))
    held._view = replace(view, sample=replace(view.sample, offsets_topic=ends))
    for one in (MEMBER_PARTITIONS, MEMBER_EXPECTED_PARTITIONS, MEMBER_LAG):
        assert reported(monitor_state, one.name)
        assert reported(held, one.name) == []


def test_without_a_fresh_sample_members_have_no_lag(monitor_state: MonitorState) -> None:
    later_ms = NOW_MS + STALE_AFTER_MS + 1
    assert reported(monitor_state, MEMBER_LAG.name, now_ms=later_ms) == []
    assert reported(monitor_state, MEMBER_PARTITIONS.name, now_ms=later_ms), "records are as they were last read"
