"""Tests of the reader with real tables: what is read, what is unknown, and how much is read."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import streaming.page.timeline.lag_line
import streaming.page.timeline.reader
from streaming.delta.cells import utc
from streaming.delta.stored_table import StoredTable
from streaming.delta.tables import (
    COMMIT_GAPS,
    GROUP_CONDITIONS,
    GROUP_GENERATIONS,
    GROUP_LAG,
    PARTITIONED_BY,
    REBALANCES,
    Table,
)
from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.page.page_input import WatchedCluster
from streaming.page.timeline.history import Mark, Timeline
from streaming.page.timeline.queries import GroupTables
from streaming.page.timeline.reader import TimelineReader
from streaming.page.timeline.section import section_of
from streaming.page.timeline.window import SPANS, Window
from streaming.state.monitor_state import MonitorState
from tests.streaming.page.scene import CLUSTER, NOW_MS, Commits, Member, generation, record_of, simulate
from tests.streaming.page.timeline.stored import ago_ms, write_condition, write_gap, write_lag

ORDERS = ("orders",)
A, B, C = (Member(f"app-{letter}", ORDERS) for letter in "abc")
HOUR, DAY = 3_600, 86_400


@dataclass
class Clock:
    """A clock that a test sets."""

    now_seconds: float = 0.0

    def __call__(self) -> float:
        """Return the time in seconds."""
        return self.now_seconds


def watched(tables: Path, *ages: float, group_id: str = "g", now_ms: int = NOW_MS) -> WatchedCluster:
    """Return a monitor that knows one group. Generations have these ages in seconds, and two or three members."""
    events = [
        generation(number, age, "range", [A, B, C] if number % 2 else [A, B])
        for number, age in enumerate(sorted(ages, reverse=True), start=1)
    ]
    monitor_state = MonitorState()
    monitor_state.put_batch([record_of(group_id, events, tables)], [])
    sample, lag, _ = simulate({group_id if group_id.isprintable() else "g": Commits(ORDERS, behind=5)})
    monitor_state.put_sample(sample, lag)
    monitor_state.put_health(ready=True, was_ready=True)
    return WatchedCluster(CLUSTER, monitor_state.view(), now_ms, 60_000)


def read(tables: Path, cluster: WatchedCluster, span: str = "1h", group_id: str = "g") -> Timeline:
    timeline = TimelineReader(str(tables), CLUSTER, Clock()).read(cluster, group_id, span)
    assert timeline is not None
    return timeline


def ten_records(_: float) -> int:
    return 10


def write_all(tables: Path, group_id: str = "g") -> None:
    """Write a calm hour with one commit gap and one condition, so that all five tables exist."""
    write_lag(tables, group_id, 2 * HOUR, 0, ten_records, range(12))
    write_gap(tables, group_id, 1_800, 1_830, 1_790)
    write_condition(tables, group_id, "rebalance_storm", 1_500, 900)


def minutes(at_ms: int) -> int:
    return (NOW_MS - at_ms) // 60_000


def test_an_hour_of_a_group_is_read_from_five_tables(tmp_path: Path) -> None:
    cluster = watched(tmp_path, 3 * HOUR, 1_800, 600)
    write_all(tmp_path)
    write_all(tmp_path, "another group")
    timeline = read(tmp_path, cluster)
    assert timeline.errors == ()
    assert [(minutes(mark.last_ms), dict(mark.causes)) for mark in timeline.marks or ()] == [
        (30, {"member_gone": 1}),
        (10, {"member_joined": 1}),
    ]
    assert (timeline.marks or ())[0].text.startswith("app@10.4.5.99 is gone; 2 members")
    assert [(minutes(gap.from_ms), gap.to_ms - gap.from_ms) for gap in timeline.gaps.spans] == [(30, 40_000)]
    assert [(bars.name, minutes(bars.spans[0].from_ms)) for bars in timeline.conditions] == [("rebalance_storm", 25)]
    assert {row.name: [band.partitions for band in row.bands] for row in timeline.members.rows} == {
        "app@10.4.5.97": [4, 6, 4],
        "app@10.4.5.98": [4, 6, 4],
        "app@10.4.5.99": [4, 4],
    }
    assert {point.records for point in timeline.lag} == {120}
    assert timeline.silences == ()


def test_a_quiet_group_shows_its_present_members_without_a_row_in_the_window(tmp_path: Path) -> None:
    """Rule 1: most groups have their last rebalance days ago. Their members are still known."""
    cluster = watched(tmp_path, 40 * DAY)
    timeline = read(tmp_path / "no tables are needed", cluster)
    assert [(row.name, row.bands[0].partitions) for row in timeline.members.rows] == [
        ("app@10.4.5.97", 4),
        ("app@10.4.5.98", 4),
        ("app@10.4.5.99", 4),
    ]
    assert timeline.members.unknown == ()


def test_the_generation_before_the_window_is_found_on_its_own_date(tmp_path: Path) -> None:
    """Rule 1: after 40 quiet days, one rebalance in the last hour."""
    timeline = read(tmp_path, watched(tmp_path, 40 * DAY, 600))
    assert timeline.members.unknown == ()
    assert [band.partitions for band in timeline.members.rows[0].bands] == [4, 6]


def test_of_many_generations_the_last_of_each_column_is_read(tmp_path: Path) -> None:
    """A rebalance storm of seven days has ten thousand generations. The picture has one column per 15 seconds."""
    watched(tmp_path, 3 * HOUR, 2 * HOUR, *range(1_800, 1_740, -4), 600)
    window = Window(NOW_MS - SPANS["1h"], NOW_MS)
    dates = [utc(NOW_MS - SPANS["6h"]).date()]
    found = [one.at_ms for one in GroupTables(str(tmp_path), CLUSTER, "g").generations(window, dates)]
    last = {window.column(ago_ms(age)): ago_ms(age) for age in (*range(1_800, 1_740, -4), 600)}
    assert found == [ago_ms(2 * HOUR), *last.values()]
    assert len(found) <= 7


def test_only_files_of_the_needed_dates_are_read(tmp_path: Path) -> None:
    """A table of ninety days must not be read for the last hour."""
    cluster = watched(tmp_path, 40 * DAY, 20 * DAY, 10 * DAY, 600)
    write_all(tmp_path)
    expected = read(tmp_path, cluster)
    files = DeltaTable(str(tmp_path / GROUP_GENERATIONS.name)).file_uris()
    removed = [file for file in files if not any(f"date=2026-11-{day}" in file for day in (11, 12, 20, 21))]
    assert len(removed) == 2
    for file in removed:
        Path(file).unlink()
    assert read(tmp_path, cluster) == expected


@pytest.mark.parametrize("missing", [REBALANCES, COMMIT_GAPS, GROUP_CONDITIONS, GROUP_GENERATIONS, GROUP_LAG])
def test_if_one_table_is_missing_the_other_parts_are_shown(tmp_path: Path, missing: Table) -> None:
    """Rule 5."""
    cluster = watched(tmp_path, 3 * HOUR, 1_800)
    write_all(tmp_path)
    (tmp_path / missing.name).rename(tmp_path / "moved")
    timeline = read(tmp_path, cluster)
    assert len(timeline.errors) == 1
    assert missing.name in timeline.errors[0]
    parts = {
        REBALANCES: timeline.marks or (),
        COMMIT_GAPS: timeline.gaps.spans,
        GROUP_CONDITIONS: timeline.conditions,
        GROUP_GENERATIONS: timeline.members.rows,
        GROUP_LAG: timeline.lag,
    }
    assert [table for table, part in parts.items() if not part] == [missing]


def test_without_tables_the_section_says_so(tmp_path: Path) -> None:
    timeline = read(tmp_path / "nowhere", watched(tmp_path, 600))
    assert len(timeline.errors) == 1
    for table in (REBALANCES, COMMIT_GAPS, GROUP_CONDITIONS, GROUP_GENERATIONS, GROUP_LAG):
        assert table.name in timeline.errors[0]
    assert "The lag is unknown." in section_of(timeline).summary
    assert "The rebalances are unknown." in section_of(timeline).summary
    assert not any("No rebalance" in sentence for sentence in section_of(timeline).summary)


def test_a_stop_of_the_monitor_is_visible_if_no_group_has_rows(tmp_path: Path) -> None:
    """The rows of another group prove that the monitor measured. Then the lag of this group did not change."""
    cluster = watched(tmp_path, 3 * HOUR)
    write_lag(tmp_path, "g", 2 * HOUR, 1_800, ten_records, range(12))
    write_lag(tmp_path, "g", 900, 0, ten_records, range(12))
    stopped = read(tmp_path, cluster)
    assert [(minutes(span.from_ms), minutes(span.to_ms)) for span in stopped.silences] == [(30, 15)]
    assert {point.records for point in stopped.lag if 16 < minutes(point.from_ms) < 29} == {None}
    write_lag(tmp_path, "another group", 2 * HOUR, 0, ten_records)
    running = read(tmp_path, cluster)
    assert running.silences == ()
    assert {point.records for point in running.lag} == {120}


def test_an_active_condition_comes_from_the_report_even_without_a_row(tmp_path: Path) -> None:
    """A condition that started two days ago has no row on the dates of the last hour."""
    cluster = watched(tmp_path, 3 * HOUR)
    write_all(tmp_path)
    monitor_state = MonitorState()
    monitor_state.put_batch(list(cluster.view.groups.values()), [])
    sample, lag, _ = simulate({"g": Commits(ORDERS)})
    monitor_state.put_sample(sample, lag)
    monitor_state.put_health(ready=True, was_ready=True)
    monitor_state.put_conditions({"g": (Condition("silent_group", ago_ms(2 * DAY), "no commit"),)})
    timeline = read(tmp_path, WatchedCluster(CLUSTER, monitor_state.view(), NOW_MS, 60_000))
    (silent,) = [bars for bars in timeline.conditions if bars.name == "silent_group"]
    assert (silent.spans[0].from_ms, silent.spans[0].to_ms) == (timeline.window.from_ms, NOW_MS)


def test_while_the_monitor_is_not_ready_a_condition_has_no_known_end(tmp_path: Path) -> None:
    """The report keeps the conditions of the last sample. Some of them may have ended since then."""
    cluster = watched(tmp_path, 3 * HOUR)
    write_lag(tmp_path, "g", 2 * HOUR, 1_800, ten_records)
    write_condition(tmp_path, "g", "silent_group", 2 * HOUR)
    condition = Condition("silent_group", ago_ms(2 * HOUR), "details of silent_group")
    view = replace(cluster.view, conditions={"g": (condition,)}, health=replace(cluster.view.health, ready=False))
    timeline = read(tmp_path, replace(cluster, view=view))
    ((span,),) = (bars.spans for bars in timeline.conditions)
    assert (span.to_ms, span.is_end_known) == (ago_ms(1_800), False)


def test_the_timeline_is_cached_for_a_short_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 4: a page reloads every 15 s, and ten engineers open it in an incident."""
    reads = list[str]()
    original = streaming.page.timeline.reader.GroupTables.marks

    def record_read(*arguments: Any) -> Any:  # noqa: ANN401 - passes all arguments
        reads.append("marks")
        return original(*arguments)

    monkeypatch.setattr(streaming.page.timeline.reader.GroupTables, "marks", record_read)
    cluster, clock = watched(tmp_path, 600), Clock()
    reader = TimelineReader(str(tmp_path), CLUSTER, clock)
    for seconds, expected in ((0, 1), (9, 1), (10, 2)):
        clock.now_seconds = seconds
        reader.read(cluster, "g", "1h")
        assert len(reads) == expected
    reader.read(cluster, "g", "7d")
    clock.now_seconds += 59
    reader.read(cluster, "g", "7d")
    assert len(reads) == 3


def test_a_group_that_does_not_exist_has_no_timeline(tmp_path: Path) -> None:
    cluster = watched(tmp_path, 600)
    assert TimelineReader(str(tmp_path), CLUSTER, Clock()).read(cluster, "no such group", "1h") is None


def test_a_group_id_that_no_table_can_contain_has_no_rows(tmp_path: Path) -> None:
    """A query with a lone surrogate cannot be encoded. The page must still be shown."""
    watched(tmp_path, 600)
    write_all(tmp_path)
    timeline = read(tmp_path, watched(tmp_path, 600, group_id="\ud800"), group_id="\ud800")
    assert timeline.marks == ()
    assert timeline.errors == ()


def test_the_names_of_groups_are_quoted(tmp_path: Path) -> None:
    """A group id is hostile text: it must not end the SQL string."""
    name = "x' OR '1'='1"
    cluster = watched(tmp_path, 3 * HOUR, 1_800, group_id=name)
    write_all(tmp_path, "g")
    timeline = read(tmp_path, cluster, group_id=name)
    assert timeline.errors == ()
    assert len(timeline.marks or ()) == 1
    assert timeline.gaps.spans == ()


def test_too_many_rows_of_lag_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 2. Files of earlier days are not read, so their rows do not count."""
    cluster = watched(tmp_path, 3 * HOUR)
    write_lag(tmp_path, "g", 50 * HOUR, 49 * HOUR, ten_records, range(12))
    write_all(tmp_path)
    monkeypatch.setattr(streaming.page.timeline.reader, "MAX_LAG_ROWS", 100)
    timeline = read(tmp_path, cluster)
    assert timeline.lag == ()
    [error] = timeline.errors
    assert error.startswith(
        "The lag is not shown, because the table group_lag contains 2,892 rows for this time range."
    )


def test_the_rows_of_a_large_group_are_never_in_memory_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 3: a group with 1,000 partitions has 20 million rows in seven days, and the monitor needed several GB."""
    cluster = watched(tmp_path, 3 * HOUR)
    write_all(tmp_path)
    write_lag(tmp_path, "g", 3_000, 1_500, int, range(12), "audit")
    expected, sizes, original = read(tmp_path, cluster), list[int](), StoredTable.query

    def query(table: StoredTable, sql: str) -> pa.Table:
        found = original(table, sql)
        if "lag_seconds FROM stored" in sql:
            sizes.append(found.num_rows)
        return found

    monkeypatch.setattr(StoredTable, "query", query)
    monkeypatch.setattr(streaming.page.timeline.lag_line, "ROWS_AT_ONCE", 100)
    assert read(tmp_path, cluster) == expected
    assert {point.records for point in expected.lag} > {120, 120 + 12 * 2_400}
    assert len(sizes) > 15
    assert max(sizes) <= 100


def test_too_many_timelines_are_not_read_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 3: without a limit, each parallel request needs memory of its own."""
    cluster, is_reading, may_continue = watched(tmp_path, 600), threading.Event(), threading.Event()
    write_all(tmp_path)
    original = GroupTables.marks

    def wait(tables: GroupTables, window: Window) -> Sequence[Mark]:
        is_reading.set()
        assert may_continue.wait(60)
        return original(tables, window)

    monkeypatch.setattr(GroupTables, "marks", wait)
    monkeypatch.setattr(streaming.page.timeline.reader, "MAX_READS", 1)
    monkeypatch.setattr(streaming.page.timeline.reader, "MAX_WAITING_READS", 0)
    reader = TimelineReader(str(tmp_path), CLUSTER, Clock())
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(reader.read, cluster, "g", "1h")
        assert is_reading.wait(60)
        refused = reader.read(cluster, "g", "6h")
        may_continue.set()
        read_first = first.result(60)
    assert refused is not None
    assert refused.errors == (
        "The timeline is not shown, because too many requests read timelines now. Reload the page in a few seconds.",
    )
    section = section_of(refused)
    assert section.summary == ["The lag is unknown.", "The rebalances are unknown."]
    assert any(one.text == "hatched rows: the members are unknown" for one in section.legend)
    assert reader.read(cluster, "g", "1h") is read_first
    again = reader.read(cluster, "g", "6h")
    assert again is not None
    assert again.errors == (), "a refusal is not cached"


@pytest.mark.slow
def test_seven_days_of_a_group_with_100_partitions_are_read_in_about_a_second(tmp_path: Path) -> None:
    """2 million rows: 100 partitions that change each 30 s for seven days. Processor time, because CI is busy."""
    import time  # noqa: PLC0415 - only here

    cluster = watched(tmp_path, *range(600, 7 * DAY, 3_000))
    for day in range(8):
        write_deltalake(
            str(tmp_path / GROUP_LAG.name), _day_of_lag(day), mode="append", partition_by=list(PARTITIONED_BY)
        )
    start_seconds = time.process_time()
    timeline = read(tmp_path, cluster, "7d")
    section_of(timeline)
    assert time.process_time() - start_seconds < 4
    assert max(point.records or 0 for point in timeline.lag) > 0
    assert len(timeline.lag) == 240


def _day_of_lag(days_ago: int) -> pa.Table:
    ticks, partitions = 2_880, 100
    first = utc(NOW_MS - NOW_MS % (1000 * DAY) - 1000 * DAY * days_ago)
    rows = ticks * partitions
    sampled_us = int(first.timestamp()) * 10**6 + np.repeat(np.arange(ticks), partitions) * 30_000_000
    values = {
        "cluster": pa.repeat(CLUSTER, rows),
        "date": pa.repeat(pa.scalar(first.date()), rows),
        "sampled_time": pa.array(sampled_us).cast(pa.timestamp("us", tz="UTC")),
        "group_id": pa.repeat("g", rows),
        "topic": pa.repeat("orders", rows),
        "partition": pa.array(np.tile(np.arange(partitions), ticks), pa.int32()),
        "lag": pa.array(np.arange(rows) % 997),
    }
    return pa.table(
        [values.get(field.name, pa.nulls(rows, field.type)) for field in GROUP_LAG.schema], schema=GROUP_LAG.schema
    )
