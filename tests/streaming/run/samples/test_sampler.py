"""Tests of the sampler: which lag rows are new, and how readiness behaves while other threads work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample
from streaming.run.samples.lag.lag_tables import _LAG_COLUMNS, _changed_rows
from streaming.run.samples.readiness import Readiness, log_ends
from streaming.state.monitor_state import MonitorState
from tests.streaming.run.samples.test_conditions import MINUTE_MS, Monitor
from tests.streaming.run.samples.test_readiness import INTERVAL_MS, MAX_UNREAD_MS

Row = dict[str, Any]
WRITTEN = pa.schema(list(LAG_SCHEMA)[:9])
NUMBERS = st.none() | st.integers(0, 2)
REPORTS = st.dictionaries(
    st.tuples(st.sampled_from(["g", "h", ""]), st.sampled_from(["a", "b"]), st.integers(0, 1)),
    st.tuples(st.integers(0, 2), st.integers(0, 1), NUMBERS, NUMBERS, NUMBERS, st.sampled_from([None, "blocked"])),
).map(lambda report: [dict(zip(WRITTEN.names, (*key, *values), strict=True)) for key, values in report.items()])


def table(rows: list[Row]) -> pa.Table:
    """Return the rows as a table in the form of a lag report."""
    return pa.Table.from_pylist(rows, schema=WRITTEN)


def _compared_values(row: Row) -> Row:
    """Return the values that decide if a row is new. A different reason of an unknown lag is new.

    Without this row, pages of the past named a transaction that had ended.
    """
    return {name: value for name, value in row.items() if name != "commit_timestamp_ms"}


@given(REPORTS, REPORTS)
def test_rows_with_unchanged_values_are_left_out_and_the_others_keep_their_order(
    now: list[Row], before: list[Row]
) -> None:
    """A change between known and unknown is new. A repeated commit with a different time is not new."""
    known = [_compared_values(row) for row in before]
    assert _changed_rows(table(now), table(before), _LAG_COLUMNS).to_pylist() == [
        row for row in now if _compared_values(row) not in known
    ]


def test_a_cluster_without_a_single_commit_has_nothing_to_write() -> None:
    """The comparison of two empty tables raised an error. So the monitor of an idle cluster was rarely ready."""
    empty = WRITTEN.empty_table()
    assert _changed_rows(empty, empty, _LAG_COLUMNS).num_rows == 0
    assert _changed_rows(empty, empty, _LAG_COLUMNS).schema == WRITTEN


def do_nothing(_: MonitorState) -> None:
    """Change nothing, for a sample during which no other thread works."""


def report_rewound_log(monitor_state: MonitorState) -> None:
    monitor_state.put_rewound({0})


def report_failed_query(monitor_state: MonitorState) -> None:
    monitor_state.put_health(ready=False, query_restarts=1)


@pytest.mark.parametrize(
    ("meanwhile", "is_ready"),
    [(do_nothing, [True, True]), (report_rewound_log, [False, False]), (report_failed_query, [False, True])],
)
def test_a_sample_does_not_undo_what_another_thread_reported_meanwhile(
    meanwhile: Callable[[MonitorState], object], is_ready: list[bool], tmp_path: Path
) -> None:
    """Readiness is evaluated last. A batch or the query's thread may report a failure before the result is shown."""
    monitor, actions = Monitor(tmp_path), [meanwhile, do_nothing]

    def source_is_alive() -> bool:
        actions.pop(0)(monitor.monitor_state)
        return True

    monitor.sampler.readiness = Readiness("prod", source_is_alive, log_ends, MAX_UNREAD_MS, INTERVAL_MS)
    is_ready_by_sample = []
    for _ in is_ready:
        monitor.sampler.take_sample()
        is_ready_by_sample.append(monitor.monitor_state.view().health.ready)
    assert is_ready_by_sample == is_ready


def test_commits_that_are_read_during_a_sample_do_not_make_the_group_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query was late, and read the commits of 30 minutes while the brokers answered the sample.

    The sample contained none of these commits. But "now" was the time of the sample, so all groups were silent.
    """
    monitor = Monitor(tmp_path)
    monitor.sampler.readiness = Readiness("prod", lambda: True, log_ends, 60 * MINUTE_MS, INTERVAL_MS)
    monitor.cluster.states = {"g": "Stable"}
    monitor.write(monitor.generation(1))
    monitor.pass_minutes(1, records_a_minute=10)
    monitor.commit(p0=0, p1=0)
    monitor.pass_minutes(1, records_a_minute=10)
    monitor.cluster.log_end += 60
    monitor.pass_minutes(30, records_a_minute=10)
    sample = monitor.cluster.sample

    def sample_and_read(topics: Iterable[str]) -> ClusterSample:
        monitor.read()
        return sample(topics)

    monkeypatch.setattr(monitor.cluster, "sample", sample_and_read)
    monitor.pass_minutes(1, records_a_minute=10)
    assert monitor.monitor_state.view().health.ready
    assert monitor.active_conditions() == {}
    monitor.pass_minutes(1, records_a_minute=10)
    assert list(monitor.active_conditions()) == ["silent_group"], "no commit was among the records"


def test_a_group_whose_commits_the_brokers_refuse_to_return_is_neither_stopped_nor_silent(tmp_path: Path) -> None:
    """The DESCRIBE permission was removed. The last known commits grew old, and the group got an incident for ever."""
    monitor = Monitor(tmp_path)
    monitor.cluster.states = {"g": "Stable"}
    monitor.write(monitor.generation(1))
    monitor.pass_minutes(1, records_a_minute=10)
    monitor.commit(p0=0, p1=0)
    monitor.pass_minutes(1, records_a_minute=10)
    monitor.monitor_state.put_health(refused_groups=frozenset({"g"}))
    monitor.pass_minutes(30, records_a_minute=10)
    view = monitor.monitor_state.view()
    assert view.lag is not None
    (group,) = view.lag.groups.to_pylist()
    assert (group["lag"], group["lag_unknown"], group["status"]) == (None, ["commits_refused"], None)
    assert (group["lag_seconds"], group["records_lost"], group["consumed_records_per_second"]) == (None, None, None)
    assert monitor.active_conditions() == {}
    assert not view.incidents
    monitor.monitor_state.put_health(refused_groups=frozenset())
    monitor.pass_minutes(1, records_a_minute=10)
    assert list(monitor.active_conditions()) == ["silent_group"], "the permission is back, and the group is silent"


def test_a_recreated_log_is_not_ready_whatever_its_length(tmp_path: Path) -> None:
    """Rule 3 of `log_integrity`: the offsets are plausible and the query continues, but the log is a different one.

    The cluster is not ready after the next start either.
    """
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


@pytest.mark.parametrize("silence_minutes", [0, 60])
def test_unread_commits_of_a_healthy_group_neither_begin_nor_end_anything(tmp_path: Path, silence_minutes: int) -> None:
    """A batch hung for 20 minutes. Healthy groups became late, and a group that reads a quiet topic became silent."""
    monitor = Monitor(tmp_path)
    monitor.cluster.states = {"g": "Stable"}
    monitor.sampler.take_sample()
    monitor.write(monitor.generation(1))
    monitor.commit(p0=0, p1=0)
    monitor.pass_minutes(silence_minutes)
    for _ in range(20):
        monitor.cluster.log_end += 2
        monitor.pass_minutes(1, records_a_minute=100)
    view = monitor.monitor_state.view()
    report = monitor.monitor_state.reports(view, is_fresh=True)["g"]
    assert (view.health.ready, report.lag.unknown) == (False, ("log_not_read",))
    assert (report.conditions, view.incidents) == ((), ())
    monitor.commit(p0=2_000, p1=2_000)
    monitor.sampler.take_sample()
    view = monitor.monitor_state.view()
    report = monitor.monitor_state.reports(view, is_fresh=True)["g"]
    assert (view.health.ready, report.lag.records, report.lag.status) == (True, 0, "OK")
    assert (report.conditions, view.incidents) == ((), ())


def test_a_silent_group_stays_silent_while_the_monitor_has_fallen_behind(tmp_path: Path) -> None:
    """The condition and its incident neither end nor begin again, because nothing about them is known."""
    monitor = Monitor(tmp_path)
    monitor.cluster.states = {"g": "Stable"}
    monitor.sampler.take_sample()
    monitor.write(monitor.generation(1))
    monitor.commit(p0=0, p1=0)
    monitor.pass_minutes(15, records_a_minute=100)
    incidents, rows = monitor.monitor_state.view().incidents, monitor.condition_changes()
    for _ in range(20):
        monitor.cluster.log_end += 2
        monitor.pass_minutes(1, records_a_minute=100)
    view = monitor.monitor_state.view()
    assert not view.health.ready
    assert (view.incidents, monitor.condition_changes()) == (incidents, rows)
    assert [*monitor.active_conditions()] == ["silent_group"]


def test_samples_are_frequent_before_and_after_the_catch_up_but_not_during_it(tmp_path: Path) -> None:
    """Before the first sample there is no target, and after the catch-up the sampler waits for verdicts."""
    monitor = Monitor(tmp_path)
    sampler, monitor.sampler.interval_seconds, monitor.cluster.log_end = monitor.sampler, 5.0, 70
    pauses_seconds = [sampler._pause_seconds()]
    sampler.take_sample()
    pauses_seconds.append(sampler._pause_seconds())
    sampler.readiness.start_over()
    pauses_seconds.append(sampler._pause_seconds())
    monitor.read()
    sampler.take_sample()
    pauses_seconds.append(sampler._pause_seconds())
    assert pauses_seconds == [1.0, 5.0, 1.0, 5.0], "the last one: the cluster is ready"


@pytest.mark.parametrize(
    ("interval_seconds", "sample_cpu_seconds", "pause_seconds"),
    [(5.0, 0.1, 5.0), (5.0, 0.9, 9.0), (5.0, 4.0, 15.0), (60.0, 4.0, 60.0)],
)
def test_samples_of_a_large_cluster_use_a_tenth_of_a_core_but_are_never_too_old(
    tmp_path: Path, interval_seconds: float, sample_cpu_seconds: float, pause_seconds: float
) -> None:
    """A sample is too old after 30 s or after three intervals."""
    monitor = Monitor(tmp_path)
    monitor.read()
    monitor.sampler.take_sample()
    monitor.sampler.interval_seconds, monitor.sampler._sample_cpu_seconds = interval_seconds, sample_cpu_seconds
    assert monitor.sampler._pause_seconds() == pause_seconds


def test_a_group_stays_blocked_until_the_query_has_read_what_a_transaction_has_hidden(tmp_path: Path) -> None:
    """After a long transaction, each group of the partition had a false lag until the query had read the records."""
    monitor = Monitor(tmp_path)
    monitor.commit(p0=7)
    monitor.cluster.end_offsets = {("orders", 0): 7, ("orders", 1): 0}
    monitor.sampler.take_sample()

    def lag_after_sample() -> tuple[int | None, str | None, bool]:
        monitor.sampler.take_sample()
        view = monitor.monitor_state.view()
        assert view.lag is not None
        (row,) = view.lag.rows_of("g")
        return row["lag"], row["unknown_reason"], view.blocked_groups()("g")

    assert lag_after_sample() == (0, None, False)
    monitor.cluster.is_blocked, monitor.cluster.log_end = True, 50
    monitor.sampler.take_sample()  # here, the transaction is short (`lag.py`, rule 1)
    monitor.cluster.end_offsets[("orders", 0)] = (
        900  # the group has committed 900, and the transaction hides the commit
    )
    assert lag_after_sample() == (None, "blocked", True)
    monitor.cluster.is_blocked = False
    assert lag_after_sample() == (None, "blocked", True)
    monitor.commit(p0=900)
    assert lag_after_sample() == (0, None, False)
    monitor.cluster.log_end += 50
    assert lag_after_sample() == (0, None, False), "the query is late, but nothing was hidden"
