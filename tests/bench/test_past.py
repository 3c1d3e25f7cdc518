"""Tests of the part `past` of the benchmark with small tables. The target itself needs a quiet machine."""

from __future__ import annotations

from pathlib import Path

from streaming.past.moments import Generation
from streaming.past.reader import PastReader
from tests.bench.past import past_figures
from tests.bench.past_tables import CLUSTER, PARTITIONS, PastTables, group_id

SMALL = PastTables(days=2, groups=20, generations_per_day=2, lagging_groups=3, lag_every_seconds=3600)


def test_each_kind_of_answer_is_measured_and_every_answer_is_complete(tmp_path: Path) -> None:
    """An answer without rows is fast, but it measures nothing."""
    figures = past_figures(tmp_path, SMALL)
    assert [figure.target is not None for figure in figures] == [True] * 4 + [False] * 5
    assert all(figure.value > 0 for figure in figures)
    end_ms = int(SMALL.first_time.timestamp() * 1000) + 2 * 86_400_000
    reader = PastReader(str(tmp_path), CLUSTER)
    reports = reader.groups(end_ms)
    assert len(reports) == SMALL.groups
    assert {report.membership.generation_id for report in reports} == {4}
    assert {report.assignment.verdict for report in reports} == {"match"}
    assert sum(report.lag.records is not None for report in reports) == SMALL.lagging_groups
    past = reader.group(group_id(0), end_ms)
    assert past is not None
    assert len(past.partitions) == PARTITIONS
    comparison = reader.compare(group_id(0), Generation(3), Generation(4))
    assert comparison is not None
    assert (comparison.moved_partitions, comparison.fewest_moves) == (2, 2)
    assert len(comparison.changes) == 2
