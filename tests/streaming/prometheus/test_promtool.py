"""Tests that promtool accepts names, units, types and help texts of the monitor's metrics."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from streaming.prometheus.metrics import Exporter
from streaming.signals import OWN, SIGNALS
from tests.monitoring_programs import monitoring_programs
from tests.streaming.http.answers import whole_answer
from tests.streaming.page.scene import CLUSTER, NOW_MS
from tests.streaming.prometheus.everything import STALE_AFTER_MS, everything

LINT = 3
"""Exit code of promtool if the input is valid and has lint warnings."""
NAMES_WITH_WARNINGS = {"kafka_consumergroup_current_offset_sum", "kafka_consumergroup_lag_sum"}
"""Gauges of kafka_exporter whose names end like those of histograms."""


@pytest.mark.slow
def test_promtool_warns_only_about_two_names_of_kafka_exporter(tmp_path: Path) -> None:
    """Runs `promtool check metrics` on a scrape with every metric."""
    exporter = Exporter([(CLUSTER, everything(tmp_path))], lambda: NOW_MS, STALE_AFTER_MS)
    command = [monitoring_programs().promtool, "check", "metrics"]
    completed = subprocess.run(command, input=whole_answer(exporter).encode(), capture_output=True, check=False)
    assert {line.split()[0] for line in completed.stderr.decode().splitlines()} == NAMES_WITH_WARNINGS
    assert completed.returncode == LINT
    assert not [name for name in NAMES_WITH_WARNINGS if SIGNALS[name].family_set == OWN]


@pytest.mark.slow
def test_every_example_is_a_query_that_prometheus_can_read(tmp_path: Path) -> None:
    """Prometheus' tool promtool checks one recording rule per example."""
    rules = "\n".join(f"  - record: example:{name}\n    expr: {signal.example!r}" for name, signal in SIGNALS.items())
    file = tmp_path / "examples.yaml"
    file.write_text(f"groups:\n- name: examples\n  rules:\n{rules}\n")
    command = [monitoring_programs().promtool, "check", "rules", "--lint=none", file]
    completed = subprocess.run(command, capture_output=True, check=False)
    assert completed.returncode == 0, completed.stderr.decode()
