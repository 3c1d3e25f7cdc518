"""The monitor's own memory is told while its processes come and go."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from streaming.prometheus.families.health import own_processes, resident_bytes
from streaming.prometheus.metrics import Exporter
from streaming.signals.monitor import RESIDENT_MEMORY_BYTES
from streaming.state.monitor_state import MonitorState
from tests.streaming.http.answers import answer


def test_a_process_that_ends_in_the_middle_of_a_scrape_spoils_nothing() -> None:
    """Seen in the benchmark: an idle Spark worker ended between listing and asking, and /metrics answered 500."""
    child = psutil.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    listed = own_processes()
    assert child.pid in {process.pid for process in listed}
    child.communicate(b"\n")
    assert 0 < resident_bytes(listed) <= resident_bytes([psutil.Process()]) * 1.5


def test_of_several_clusters_memory_is_measured_once_and_the_same_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """They share their processes; to walk through all of them for each cluster is time for nothing."""
    measured: list[int] = []

    def measure(processes: Iterable[psutil.Process]) -> int:
        measured.append(resident_bytes(processes))
        return measured[-1]

    monkeypatch.setattr("streaming.prometheus.metrics.resident_bytes", measure)
    exporter = Exporter([(name, MonitorState()) for name in ("eu", "us", "ap")], lambda: 0, 30_000)
    families = {family.name: family for family in parse_text(answer(exporter))}
    samples = families[RESIDENT_MEMORY_BYTES.name].samples
    assert len(measured) == 1
    assert {sample.labels["cluster"]: sample.value for sample in samples} == dict.fromkeys(
        ("eu", "us", "ap"), *measured
    )
