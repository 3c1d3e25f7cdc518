"""A monitor that loses a rebalance, or shows a group as it is not, gets no figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.bench.fill import BenchError
from tests.bench.latency_probe import LatencyProbe, check_tables, wrong_groups
from tests.bench.scrape import Scrape
from tests.bench.synthetic_groups import SyntheticGroups, Written

if TYPE_CHECKING:
    from pathlib import Path

SYNTHETIC_GROUPS = SyntheticGroups(3)
REBALANCED = (("bench-crowd-00000", 2), ("bench-crowd-00001", 2))
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


def test_tables_that_hold_every_rebalance_once_are_right(tmp_path: Path) -> None:
    _write_tables(tmp_path, REBALANCED, FOUNDED + REBALANCED)
    check_tables(tmp_path, SYNTHETIC_GROUPS, rebalances=2)


@pytest.mark.parametrize(
    ("rebalances", "verdicts", "verdict", "said"),
    [
        (REBALANCED[:1], FOUNDED + REBALANCED, "match", r"rebalances lacks 1 rows of 2, such as .*00001"),
        (REBALANCED + REBALANCED[:1], FOUNDED + REBALANCED, "match", r"rebalances has 1 rows too many"),
        (REBALANCED, FOUNDED + REBALANCED[1:], "match", r"assignment_drift \(match\) lacks 1 rows of 5"),
        (REBALANCED, FOUNDED + REBALANCED, "unknown", r"assignment_drift \(match\) lacks 5 rows of 5"),
    ],
)
def test_what_is_lost_or_twice_or_judged_wrongly_is_said(
    tmp_path: Path, rebalances: Rows, verdicts: Rows, verdict: str, said: str
) -> None:
    """Rule 3: nothing lost, nothing twice."""
    _write_tables(tmp_path, rebalances, verdicts, verdict)
    with pytest.raises(BenchError, match=said):
        check_tables(tmp_path, SYNTHETIC_GROUPS, rebalances=2)


def _scrape(generations: dict[str, int], lags: dict[str, int]) -> Scrape:
    families = (("rebalance_monitor_group_generation", generations), ("rebalance_monitor_group_lag", lags))
    lines = [f'{name}{{cluster="c",group="{group}"}} {value}' for name, of in families for group, value in of.items()]
    return Scrape("\n".join(lines) + "\n", 0.1, 100.0)


def test_every_group_is_held_against_what_was_written() -> None:
    """After 35 commits of 30 partitions: one round whole, and half of the first group's second."""
    written = Written(at_ms=0, commits=35, rebalances=1, late_seconds=0)
    names = [SYNTHETIC_GROUPS.group_id(number) for number in range(3)]
    generations, lags = dict(zip(names, (2, 1, 1), strict=True)), dict(zip(names, (15, 20, 20), strict=True))
    assert wrong_groups(_scrape(generations, lags), SYNTHETIC_GROUPS, written) == []
    assert wrong_groups(
        _scrape({**generations, names[0]: 1}, {names[0]: 15, names[2]: 20}), SYNTHETIC_GROUPS, written
    ) == [
        "bench-crowd-00000 has generation and lag (1, 15), not (2, 15)",
        "bench-crowd-00001 has generation and lag (1, None), not (1, 20)",
    ]


def test_each_rebalance_is_heard_of_once_with_the_time_of_its_step() -> None:
    latency_probe = LatencyProbe(port=0, synthetic_groups=SYNTHETIC_GROUPS)
    steps = [Written(at_ms=1_000 * at, commits=0, rebalances=at, late_seconds=0) for at in (1, 2)]
    latency_probe.hear(steps)
    latency_probe.hear(steps)
    latency_probe.delays.shown({SYNTHETIC_GROUPS.group_id(number): 2.0 for number in range(3)}, 10.0)
    assert latency_probe.delays.seconds == [9.0, 8.0]
