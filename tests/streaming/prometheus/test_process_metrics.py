"""Tests of the metrics that describe the monitor's process, its links and its disks."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from streaming.config.links import LinkSettings
from streaming.prometheus.exposition import Encoder
from streaming.prometheus.metric_selection import ExportOptions
from streaming.prometheus.metrics import Exporter
from streaming.state.monitor_state import MonitorState
from tests.streaming.http.answers import answer, whole_answer
from tests.streaming.prometheus.test_metrics import named, scraped

STANDARD = ("process_start_time_seconds", "process_resident_memory_bytes", "python_info", "python_gc_collections_total")


@pytest.mark.parametrize("encoder", [generate_latest, generate_openmetrics])
def test_the_standard_metrics_of_the_process_occur_once_for_all_clusters(encoder: Encoder) -> None:
    """Prometheus refuses a family that appears twice. Dashboards for Python processes need these names unchanged."""
    exporter = Exporter([(name, MonitorState()) for name in ("eu", "us")], lambda: 0, 30_000)
    text = whole_answer(exporter, encoder)
    for name in STANDARD:
        types = {f"# TYPE {name} ", f"# TYPE {name.removesuffix('_total')} "}
        assert sum(text.count(one) for one in types) == 1, name
        assert "cluster" not in next(line for line in text.splitlines() if line.startswith(name))
    assert text.count("# EOF") == (encoder is generate_openmetrics)


def test_alerts_find_the_addresses_of_the_settings_in_the_info_metric() -> None:
    """External labels of Prometheus would be attached to every series of a remote write."""
    links = LinkSettings(
        page_url="https://monitor.example.com/",
        grafana_url="https://grafana.example.com",
        runbook_url="https://wiki.example.com/runbook",
    )
    exporter = Exporter([("prod", MonitorState())], lambda: 0, 30_000, ExportOptions(links=links))
    (info,) = (one for family in parse_text(answer(exporter)) for one in family.samples if one.name.endswith("_info"))
    assert info.labels["version"]
    assert {name: url for name, url in info.labels.items() if name.endswith("_url")} == {
        "page_url": "https://monitor.example.com",
        "grafana_url": "https://grafana.example.com",
        "runbook_url": "https://wiki.example.com/runbook",
    }


def test_the_free_share_of_a_disk_is_shown_before_its_folder_exists(tmp_path: Path) -> None:
    """The checkpoint is created after the start. A folder that is not on this machine has no series."""
    monitor_state = MonitorState()
    monitor_state.put_health(folders={"tables": str(tmp_path), "checkpoint": str(tmp_path / "a" / "b")})
    free = named(scraped(monitor_state), "rebalance_monitor_disk_free_ratio")
    assert free.keys() == {"folder=tables", "folder=checkpoint"}
    assert all(0 < ratio < 1 for ratio in free.values())
    assert named(scraped(MonitorState()), "rebalance_monitor_disk_free_ratio") == {}
