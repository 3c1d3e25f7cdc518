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
from streaming.page.watched import Watched
from streaming.prometheus.metrics import Exporter
from streaming.prometheus.shown import EVERYTHING, Shown
from streaming.signals.members import MEMBER_EXPECTED_PARTITIONS, MEMBER_LAG, MEMBER_PARTITIONS
from streaming.state.registry import Registry
from tests.streaming.groups import epoch, joined, member, sampled, target, target_epoch, written
from tests.streaming.http.answers import answer
from tests.streaming.page.scene import CLUSTER, NOW_MS, scene
from tests.streaming.prometheus.test_metrics import record, registry_of

STALE_AFTER_MS = 60_000


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    tables: Path = tmp_path_factory.mktemp("tables")
    return scene(tables).registry


def told(registry: Registry, name: str, shown: Shown = EVERYTHING, now_ms: int = NOW_MS) -> list[Sample]:
    """Return the samples of one metric."""
    text = answer(Exporter([(CLUSTER, registry)], lambda: now_ms, STALE_AFTER_MS, shown))
    return [sample for family in parse_text(text) for sample in family.samples if sample.name == name]


def by_member(found: Iterable[Sample], group: str) -> dict[str, float]:
    """Return sums over topics."""
    sums: Counter[str] = Counter()
    for sample in found:
        if sample.labels["group"] == group:
            sums[sample.labels["member"]] += int(sample.value)
    return dict(sums)


def test_members_have_and_should_have_what_the_page_says(registry: Registry) -> None:
    """Two answers to "who owns what" would be one too many."""
    has, should, lag = (told(registry, one.name) for one in (MEMBER_PARTITIONS, MEMBER_EXPECTED_PARTITIONS, MEMBER_LAG))
    watched, verdicts = Watched(CLUSTER, registry.present(), NOW_MS, STALE_AFTER_MS), set()
    for group_id in registry.present().alive_groups():
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
    registry = registry_of([record("g", [written(5, 3, held), sampled(9_000, orders=3)])])
    found = told(registry, MEMBER_PARTITIONS.name, now_ms=1_000_000)
    labels = {"cluster": CLUSTER, "group": "g", "client_host": "/127.0.0.1", "topic": "orders"}
    assert [(one.labels, one.value) for one in found] == [
        ({**labels, "member": "m-1", "group_instance_id": "pod-0", "client_id": "client-m-1"}, 2),
        ({**labels, "member": "m-2", "group_instance_id": "", "client_id": "client-m-2"}, 0),
    ]


def test_a_member_of_which_no_record_tells_what_it_has_has_no_series() -> None:
    """KIP-848: its target is known, what it holds is not. Never a 0 for an unknown."""
    events = [joined(0), epoch(1), target(2), target_epoch(3), sampled(9_000, orders=3)]
    registry = registry_of([record("g", events)])
    assert told(registry, MEMBER_PARTITIONS.name, now_ms=1_000_000) == []
    assert told(registry, MEMBER_LAG.name, now_ms=1_000_000) == []


def test_a_topic_that_was_not_asked_for_is_left_out_of_shares_but_not_of_a_members_lag(registry: Registry) -> None:
    shown = Shown(topics=NameFilter(deny="orders"))
    before, after = (told(registry, MEMBER_PARTITIONS.name, one) for one in (EVERYTHING, shown))
    assert after == [sample for sample in before if sample.labels["topic"] != "orders"] != before
    assert told(registry, MEMBER_LAG.name, shown) == told(registry, MEMBER_LAG.name)


def test_nothing_is_told_of_members_behind_an_open_transaction(registry: Registry) -> None:
    """Who is a member now nobody knows: the record that says so may be held back."""
    present, held = registry.present(), Registry()
    assert present.sample is not None
    ends = dict.fromkeys(present.sample.offsets_topic, LogEnds(10, 5))
    held._present = replace(present, sample=replace(present.sample, offsets_topic=ends))
    for one in (MEMBER_PARTITIONS, MEMBER_EXPECTED_PARTITIONS, MEMBER_LAG):
        assert told(registry, one.name)
        assert told(held, one.name) == []


def test_without_a_fresh_sample_members_have_no_lag(registry: Registry) -> None:
    later_ms = NOW_MS + STALE_AFTER_MS + 1
    assert told(registry, MEMBER_LAG.name, now_ms=later_ms) == []
    assert told(registry, MEMBER_PARTITIONS.name, now_ms=later_ms), "records are as they were last read"
