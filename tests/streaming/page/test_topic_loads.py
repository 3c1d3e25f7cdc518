"""Rule 9: the page, the API and `/metrics` show the same values of a hot partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from streaming.config.names import NameFilter
from streaming.evaluation.lag.topic_loads import TopicLoad
from streaming.prometheus.metric_selection import EVERYTHING, ExportOptions, MetricSelection
from streaming.prometheus.metrics import Exporter
from streaming.state.monitor_state import MonitorState
from tests.streaming.http.answers import answer
from tests.streaming.page.scene import CLUSTER, NOW_MS, scene
from tests.streaming.page.test_application import Seen, ask, pages_of
from tests.streaming.prometheus.everything import HOT, STALE_AFTER_MS

EVEN = TopicLoad("clicks", 24, 240, 0, 10, 1 / 24, 1.0)
RATIO = "rebalance_monitor_topic_hottest_partition_ratio"


def ratios(
    state: MonitorState, options: ExportOptions = EVERYTHING, now_ms: int = NOW_MS
) -> Mapping[tuple[str, str], float]:
    """Return the values of the metric, by topic and partition."""
    text = answer(Exporter([(CLUSTER, state)], lambda: now_ms, STALE_AFTER_MS, options))
    found = (sample for family in parse_text(text) for sample in family.samples if sample.name == RATIO)
    return {(sample.labels["topic"], sample.labels["partition"]): sample.value for sample in found}


@pytest.fixture(scope="module")
def monitor_state(tmp_path_factory: pytest.TempPathFactory) -> MonitorState:
    """Return the scene, in which one of twelve partitions of `orders` receives most records."""
    state = scene(tmp_path_factory.mktemp("tables")).monitor_state
    sample, lag = state.view().sample, state.view().lag
    assert sample is not None
    assert lag is not None
    state.put_sample(sample, replace(lag, topic_loads={"orders": HOT, "clicks": EVEN}))
    return state


def test_a_hot_partition_is_the_same_in_every_output(monitor_state: MonitorState, tmp_path: Path) -> None:
    pages = pages_of(monitor_state, tmp_path)
    document = ask(pages, "/api/v1/groups/search-index").json()
    assert document["topic_loads"] == [asdict(EVEN), asdict(HOT)]
    text = Seen(ask(pages, "/groups/search-index").text).text
    assert (
        "Hot partition: orders -3 receives 62 % of the new records of the topic (310 of 500 records/s). The "
        "partition receives 7.4 times the mean of the 12 partitions of the topic." in text
    )
    assert "Hot partition: clicks" not in text
    assert ratios(monitor_state) == {("orders", "3"): HOT.max_to_mean_ratio}


def test_a_group_that_reads_other_topics_shows_no_hot_partition(monitor_state: MonitorState, tmp_path: Path) -> None:
    pages = pages_of(monitor_state, tmp_path)
    assert ask(pages, "/api/v1/groups/ledger").json()["topic_loads"] == []
    assert "Hot partition" not in ask(pages, "/groups/ledger").text


@pytest.mark.parametrize(
    ("selection", "series", "why"),
    [
        (MetricSelection("topic"), 1, "the default granularity: one series for each hot topic"),
        (MetricSelection("group"), 0, "topics are not exported"),
        (MetricSelection("group", top_k=20), 1, "the topics of the worst groups are exported"),
        (MetricSelection("topic", topics=NameFilter(deny="orders")), 0, "the settings exclude the topic"),
        (
            MetricSelection("group", top_k=20, groups=NameFilter(allow="ledger")),
            0,
            "no exported group reads the hot topic",
        ),
    ],
)
def test_only_selected_hot_topics_have_a_series(
    monitor_state: MonitorState, selection: MetricSelection, series: int, why: str
) -> None:
    assert len(ratios(monitor_state, ExportOptions(selection))) == series, why


def test_without_a_fresh_sample_nothing_is_shown(monitor_state: MonitorState) -> None:
    assert ratios(monitor_state, now_ms=NOW_MS + 3_600_000) == {}
