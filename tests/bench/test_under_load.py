"""What the load says of itself, read while it is being written."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from tests.bench.synthetic_groups import SyntheticGroups, Written
from tests.bench.under_load import Steady, WrittenLog

if TYPE_CHECKING:
    from pathlib import Path

STEPS = tuple(Written(at_ms=number, commits=10 * number, rebalances=number, late_seconds=0.5) for number in range(3))


def test_a_step_is_read_once_it_is_written_whole(tmp_path: Path) -> None:
    """Beside it stands what a client library complains of."""
    path = tmp_path / "process.log"
    log = WrittenLog(path)
    assert list(log.read()) == []
    lines = [json.dumps(asdict(step)) for step in STEPS]
    path.write_text(f"%4|GETPID| retrying\n{lines[0]}\n{lines[1][:20]}")
    assert tuple(log.read()) == STEPS[:1]
    with path.open("a") as output:
        output.write(f"{lines[1][20:]}\n{lines[2]}\n")
    assert tuple(log.read()) == STEPS


def test_the_monitor_is_told_its_trigger_and_nothing_else_that_is_not_its_own(tmp_path: Path) -> None:
    steady = Steady(SyntheticGroups(10), trigger_seconds=10)
    environment = steady.environment("127.0.0.1:9092", tmp_path, 1234)
    assert environment["REBALANCE_MONITOR_SOURCE__TRIGGER_SECONDS"] == "10"
    assert environment["REBALANCE_MONITOR_METRICS__PORT"] == "1234"


def test_a_steady_load_says_what_it_is() -> None:
    assert (
        Steady(SyntheticGroups(10_000)).in_words
        == "10,000 groups with 100,000 partitions, 20,000 commits/s and 500 rebalances/min for 180 s"
    )
