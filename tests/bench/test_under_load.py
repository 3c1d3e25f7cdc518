"""Tests of reading the progress of the load while the load writes it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from tests.bench.synthetic_groups import LoadProgress, SyntheticGroups
from tests.bench.under_load import LoadProgressLog, SteadyLoad

if TYPE_CHECKING:
    from pathlib import Path

STEPS = tuple(
    LoadProgress(at_ms=number, commits=10 * number, rebalances=number, late_seconds=0.5) for number in range(3)
)


def test_a_step_is_read_when_its_line_is_complete(tmp_path: Path) -> None:
    """The output also contains log lines of a client library."""
    path = tmp_path / "process.log"
    log = LoadProgressLog(path)
    assert list(log.read()) == []
    lines = [json.dumps(asdict(step)) for step in STEPS]
    path.write_text(f"%4|GETPID| retrying\n{lines[0]}\n{lines[1][:20]}")
    assert tuple(log.read()) == STEPS[:1]
    with path.open("a") as output:
        output.write(f"{lines[1][20:]}\n{lines[2]}\n")
    assert tuple(log.read()) == STEPS


def test_only_the_trigger_differs_from_the_default_settings(tmp_path: Path) -> None:
    steady = SteadyLoad(SyntheticGroups(10), trigger_seconds=10)
    environment = steady.environment("127.0.0.1:9092", tmp_path, 1234)
    assert environment["REBALANCE_MONITOR_SOURCE__TRIGGER_SECONDS"] == "10"
    assert environment["REBALANCE_MONITOR_METRICS__PORT"] == "1234"


def test_a_steady_load_is_described_in_words() -> None:
    assert (
        SteadyLoad(SyntheticGroups(10_000)).in_words
        == "10,000 groups with 100,000 partitions, 20,000 commits/s and 500 rebalances/min for 180 s"
    )
