"""Tests that a monitor with a lost rebalance or a wrong value gets no figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.bench.fill import BenchError
from tests.bench.latency_probe import LatencyProbe, check_tables, wrong_groups
from tests.bench.scrape import Scrape
from tests.bench.synthetic_groups import LoadProgress, SyntheticGroups

if TYPE_CHECKING:
    from pathlib import Path

SYNTHETIC_GROUPS = SyntheticGroups(3)
REBALANCED = (("bench-synthetic-00000", 2), ("bench-synthetic-00001", 2))
FOUNDED = tuple((SYNTHETIC_GROUPS.group_id(number), 1) for number in range(3))
Rows = tuple[tuple[str, int], ...]


def _write_tables(folder: Path, rebalances: Rows, verdicts: Rows, verdict: str = "match") -> None:
    reported = [{"group_id": group_id, "generation_id": at, "kind": "rebalance"} for group_id, at in rebalances]
    first = [{"group_id": group_id, "generation_id": at, "kind": "first_seen"} for group_id, at in FOUNDED]
    evaluated = [
        {"group_id": group_id, "generation_id": at, "is_group_strategy": is_own, "verdict": verdict}
        for group_id, at in verdicts
        for is_own in (True, False)
    ]
    write_deltalake(str(folder / "rebalances"), pa.Table.from_pylist(first + reported))
    write_deltalake(str(folder / "assignment_drift"), pa.Table.from_pylist(evaluated))


def test_tables_with_every_rebalance_once_are_correct(tmp_path: Path) -> None:
    _write_tables(tmp_path, REBALANCED, FOUNDED + REBALANCED)
    check_tables(tmp_path, SYNTHETIC_GROUPS, rebalances=2)


@pytest.mark.parametrize(
    ("rebalances", "verdicts", "verdict", "message"),
    [
        (REBALANCED[:1], FOUNDED + REBALANCED, "match", r"rebalances lacks 1 of 2 rows, for example .*00001"),
        (REBALANCED + REBALANCED[:1], FOUNDED + REBALANCED, "match", r"rebalances has 1 rows too many"),
        (REBALANCED, FOUNDED + REBALANCED[1:], "match", r"assignment_drift \(match\) lacks 1 of 5 rows"),
        (REBALANCED, FOUNDED + REBALANCED, "unknown", r"assignment_drift \(match\) lacks 5 of 5 rows"),
    ],
)
def test_a_lost_row_a_duplicate_row_or_a_wrong_verdict_is_reported(
    tmp_path: Path, rebalances: Rows, verdicts: Rows, verdict: str, message: str
) -> None:
    """Every rebalance must have exactly one row and the verdict `match`."""
    _write_tables(tmp_path, rebalances, verdicts, verdict)
    with pytest.raises(BenchError, match=message):
        check_tables(tmp_path, SYNTHETIC_GROUPS, rebalances=2)


def _scrape(generations: dict[str, int], lags: dict[str, int]) -> Scrape:
    families = (("rebalance_monitor_group_generation", generations), ("rebalance_monitor_group_lag", lags))
    lines = [f'{name}{{cluster="c",group="{group}"}} {value}' for name, of in families for group, value in of.items()]
    return Scrape("\n".join(lines) + "\n", 0.1, 100.0)


def test_every_group_is_compared_with_the_written_records() -> None:
    """35 commits of 30 partitions are one complete round, and half of the first group's second round."""
    written = LoadProgress(at_ms=0, commits=35, rebalances=1, late_seconds=0)
    names = [SYNTHETIC_GROUPS.group_id(number) for number in range(3)]
    generations, lags = dict(zip(names, (2, 1, 1), strict=True)), dict(zip(names, (15, 20, 20), strict=True))
    assert wrong_groups(_scrape(generations, lags), SYNTHETIC_GROUPS, written) == []
    assert wrong_groups(
        _scrape({**generations, names[0]: 1}, {names[0]: 15, names[2]: 20}), SYNTHETIC_GROUPS, written
    ) == [
        "bench-synthetic-00000 has generation and lag (1, 15), not (2, 15)",
        "bench-synthetic-00001 has generation and lag (1, None), not (1, 20)",
    ]


def test_each_rebalance_is_added_once_with_the_time_of_its_step() -> None:
    latency_probe = LatencyProbe(port=0, synthetic_groups=SYNTHETIC_GROUPS)
    steps = [LoadProgress(at_ms=1_000 * at, commits=0, rebalances=at, late_seconds=0) for at in (1, 2)]
    latency_probe.add_progress(steps)
    latency_probe.add_progress(steps)
    latency_probe.delays.add_shown({SYNTHETIC_GROUPS.group_id(number): 2.0 for number in range(3)}, 10.0)
    assert latency_probe.delays.seconds == [9.0, 8.0]
