"""Tests that the monitor's memory is measured while its processes start and end."""

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


def test_a_process_that_ends_during_a_scrape_causes_no_error() -> None:
    """In the benchmark, an idle Spark worker ended after it was listed, and /metrics returned status 500."""
    child = psutil.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    listed = own_processes()
    assert child.pid in {process.pid for process in listed}
    child.communicate(b"\n")
    assert 0 < resident_bytes(listed) <= resident_bytes([psutil.Process()]) * 1.5


def test_memory_is_measured_once_for_all_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """All clusters share the same processes, so one measurement is enough."""
    measurements: list[int] = []

    def measure(processes: Iterable[psutil.Process]) -> int:
        measurements.append(resident_bytes(processes))
        return measurements[-1]

    monkeypatch.setattr("streaming.prometheus.families.health.resident_bytes", measure)
    exporter = Exporter([(name, MonitorState()) for name in ("eu", "us", "ap")], lambda: 0, 30_000)
    families = {family.name: family for family in parse_text(answer(exporter))}
    samples = families[RESIDENT_MEMORY_BYTES.name].samples
    assert len(measurements) == 1
    assert {sample.labels["cluster"]: sample.value for sample in samples} == dict.fromkeys(
        ("eu", "us", "ap"), *measurements
    )
