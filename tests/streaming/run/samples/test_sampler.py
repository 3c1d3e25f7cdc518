"""Which rows of lag are new since the last that were written, and what a beat's verdict is worth while others work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.lag.lag import LAG_SCHEMA
from streaming.run.samples.lag_tables import _LAG_NUMBERS, _changed_rows
from streaming.run.samples.readiness import Readiness
from streaming.state.monitor_state import MonitorState
from tests.streaming.run.samples.test_conditions import Monitor

Row = dict[str, Any]
WRITTEN = pa.schema(list(LAG_SCHEMA)[:9])
NUMBERS = st.none() | st.integers(0, 2)
REPORTS = st.dictionaries(
    st.tuples(st.sampled_from(["g", "h", ""]), st.sampled_from(["a", "b"]), st.integers(0, 1)),
    st.tuples(st.integers(0, 2), st.integers(0, 1), NUMBERS, NUMBERS, NUMBERS, st.sampled_from([None, "blocked"])),
).map(lambda report: [dict(zip(WRITTEN.names, (*key, *values), strict=True)) for key, values in report.items()])


def table(rows: list[Row]) -> pa.Table:
    """Return rows as a lag report has them."""
    return pa.Table.from_pylist(rows, schema=WRITTEN)


def _said(row: Row) -> Row:
    """What makes a row another: the table has no column for why a lag is unknown."""
    return {name: value for name, value in row.items() if name not in {"commit_timestamp_ms", "unknown_reason"}}


@given(REPORTS, REPORTS)
def test_what_was_written_like_this_is_left_out_and_all_else_is_kept_in_order(
    now: list[Row], before: list[Row]
) -> None:
    """An unknown that became known is a change, and so is the reverse; a commit repeated at another time is none."""
    known = [_said(row) for row in before]
    assert _changed_rows(table(now), table(before), _LAG_NUMBERS).to_pylist() == [
        row for row in now if _said(row) not in known
    ]


def test_a_cluster_without_a_single_commit_has_nothing_to_write() -> None:
    """Comparing nothing with nothing once raised, and the monitor of an idle cluster was never ready for long."""
    empty = WRITTEN.empty_table()
    assert _changed_rows(empty, empty, _LAG_NUMBERS).num_rows == 0
    assert _changed_rows(empty, empty, _LAG_NUMBERS).schema == WRITTEN


def nothing(_: MonitorState) -> None:
    """Nobody else is at work."""


def found_rewound(monitor_state: MonitorState) -> None:
    monitor_state.put_rewound({0})


def query_failed(monitor_state: MonitorState) -> None:
    monitor_state.put_health(ready=False, query_restarts=1)


@pytest.mark.parametrize(
    ("meanwhile", "is_ready"), [(nothing, [True, True]), (found_rewound, [False, False]), (query_failed, [False, True])]
)
def test_what_another_thread_finds_during_a_beat_is_not_undone_by_it(
    meanwhile: Callable[[MonitorState], object], is_ready: list[bool], tmp_path: Path
) -> None:
    """Readiness is evaluated last. A batch or the query's thread may find something before it is shown."""
    monitor, found = Monitor(tmp_path), [meanwhile, nothing]

    def source_is_alive() -> bool:
        found.pop(0)(monitor.monitor_state)
        return True

    monitor.sampler._readiness = Readiness(source_is_alive)
    shown = []
    for _ in is_ready:
        monitor.sampler.take_sample()
        shown.append(monitor.monitor_state.view().health.ready)
    assert shown == is_ready


def test_a_log_created_anew_is_not_ready_however_long_it_is(tmp_path: Path) -> None:
    """Rule 3 of `continuity`: all its offsets fit, and the query reads on. Nor is it at the next start."""
    monitor = Monitor(tmp_path)
    monitor.cluster.log_end = 70
    monitor.read()
    monitor.sampler.take_sample()
    assert monitor.monitor_state.view().health.ready
    monitor.cluster.offsets_topic_id, monitor.cluster.log_end = "Yzm9gVTsQ7GnpBNcXPE4Bw", 900
    for start_again in (lambda: None, monitor.start):
        start_again()
        monitor.read()
        monitor.sampler.take_sample()
        assert not monitor.monitor_state.view().health.ready
