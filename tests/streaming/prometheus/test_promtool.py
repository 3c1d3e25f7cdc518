"""Prometheus' own tool finds nothing to say of our metrics: names, units, types, words."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from streaming.prometheus.metrics import Exporter
from streaming.signals import OWN, SIGNALS
from tests.monitoring_programs import monitoring_programs
from tests.streaming.http.answers import answer
from tests.streaming.page.scene import CLUSTER, NOW_MS
from tests.streaming.prometheus.everything import STALE_AFTER_MS, everything

LINT = 3
"""How promtool ends where it has something to say, and can read what it was given."""
DISLIKED = {"kafka_consumergroup_current_offset_sum", "kafka_consumergroup_lag_sum"}
"""Gauges whose names end as a histogram's, as kafka_exporter has them."""


@pytest.mark.slow
def test_promtool_dislikes_two_names_that_are_not_ours_and_nothing_else(tmp_path: Path) -> None:
    """`promtool check metrics` of a scrape in which every metric has something to say."""
    exporter = Exporter([(CLUSTER, everything(tmp_path))], lambda: NOW_MS, STALE_AFTER_MS)
    command = [monitoring_programs().promtool, "check", "metrics"]
    checked = subprocess.run(command, input=answer(exporter).encode(), capture_output=True, check=False)
    assert {line.split()[0] for line in checked.stderr.decode().splitlines()} == DISLIKED
    assert checked.returncode == LINT
    assert not [name for name in DISLIKED if SIGNALS[name].family_set == OWN]


@pytest.mark.slow
def test_every_example_is_a_query_that_prometheus_can_read(tmp_path: Path) -> None:
    """A recording rule of each, checked by promtool."""
    rules = "\n".join(f"  - record: example:{name}\n    expr: {signal.example!r}" for name, signal in SIGNALS.items())
    file = tmp_path / "examples.yaml"
    file.write_text(f"groups:\n- name: examples\n  rules:\n{rules}\n")
    command = [monitoring_programs().promtool, "check", "rules", "--lint=none", file]
    checked = subprocess.run(command, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr.decode()
