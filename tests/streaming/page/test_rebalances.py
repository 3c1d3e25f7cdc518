"""Tests of the last rebalances on the page: few files are read, and they are read again for a new rebalance."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from deltalake import DeltaTable, write_deltalake
from markupsafe import escape

import streaming.page.rebalances
from streaming.combine.gaps import CommitGap
from streaming.delta.cells import LAST_MS
from streaming.delta.rows import arrow_table, commit_gap_rows
from streaming.delta.tables import COMMIT_GAPS, PARTITIONED_BY, REBALANCES
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.rebalances.rebalance_words import describe_rebalance
from streaming.page.last_rebalances import LastRebalances
from streaming.page.rebalances import CACHE_SECONDS, RebalanceReader
from streaming.past.moments import format_moment
from streaming.state.monitor_state import MonitorState
from tests.streaming.page.scene import CLUSTER, NOW_MS, PARTITIONS, Member, generation, record_of, simulate
from tests.streaming.page.test_application import Answer, ask, pages_of

A, B = Member("app-a", ["orders"]), Member("app-b", ["orders"])
DAY_SECONDS = 86_400


class Clock:
    """A clock that a test sets."""

    now_seconds = 0.0

    def __call__(self) -> float:
        """Return the time in seconds."""
        return self.now_seconds


def reader(tables: Path) -> tuple[RebalanceReader, Clock]:
    clock = Clock()
    return RebalanceReader(str(tables), CLUSTER, clock), clock


def group_with_rebalances(tables: Path, generations: int = 3, group_id: str = "g") -> GroupState:
    """Return a group whose second member joins and leaves, with one day between generations."""
    events = [
        generation(number, DAY_SECONDS * (10 - number), "range", [A, B][: 1 + number % 2])
        for number in range(1, generations + 1)
    ]
    return record_of(group_id, events, tables)


def test_the_last_rebalances_are_shown_the_newest_first(tmp_path: Path) -> None:
    record = group_with_rebalances(tmp_path)
    group_with_rebalances(tmp_path, group_id="other")
    lines = reader(tmp_path)[0].last(record).lines
    assert [(one.generation_id, one.kind) for one in lines] == [
        (3, "rebalance"),
        (2, "rebalance"),
        (1, "first_seen"),
    ]
    assert lines[1].text.startswith("app@10.4.5.98 is gone; 1 member; 6 partitions moved")


def test_a_cause_from_a_downgrade_is_described_without_the_names_of_members() -> None:
    """The row of the rebalance has no changed members: the members left in the row of the downgrade."""
    row = {"kind": "rebalance", "causes": ["member_gone"], "changes": [], "members": 1, "unowned": [], "conditions": []}
    moves = {"moved_partitions": 1, "fewest_moves": 1, "fewest_is_exact": True, "withheld_partitions": 0}
    text = describe_rebalance({**row, **moves, "sync_time_ms": None, "skipped_generations": 0})
    assert text == "at least one member left with the downgrade; 1 member; 1 partition moved (1 necessary)"


def test_each_rebalance_has_a_link_that_compares_it_with_the_previous_rebalance(tmp_path: Path) -> None:
    record = group_with_rebalances(tmp_path)
    newest, before, first = reader(tmp_path)[0].last(record).lines
    assert (newest.previous_generation_id, newest.previous_timestamp_ms) == (2, before.timestamp_ms)
    assert (first.previous_generation_id, first.previous_timestamp_ms) == (None, None)
    page = group_page(record, tmp_path).text
    assert ["compare 2 and 3" in page, "compare 1 and 2" in page, page.count(">compare ")] == [True, True, 2]
    assert f"/groups/g?from={format_moment(before.timestamp_ms)}".replace(":", "%3A") in page


def test_only_files_of_the_needed_days_are_read(tmp_path: Path) -> None:
    """Rule 1: the reader does not read a table of ninety days for the last three rebalances of a group."""
    record = group_with_rebalances(tmp_path, 6)
    recent = msgspec.structs.replace(record.rebalance_history, recent=record.rebalance_history.recent[-2:])
    for file in DeltaTable(str(tmp_path / REBALANCES.name)).file_uris():
        if not any(f"date=2026-11-{day}" in file for day in (16, 17)):
            Path(file).unlink()
    assert len(list((tmp_path / REBALANCES.name).rglob("*.parquet"))) == 2
    lines = reader(tmp_path)[0].last(msgspec.structs.replace(record, rebalance_history=recent)).lines
    assert [one.generation_id for one in lines] == [6, 5]


def test_rebalances_are_read_again_only_after_the_cache_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 2: the monitor state has a new rebalance shortly before the table has it."""
    group_with_rebalances(tmp_path, 2)
    ahead = group_with_rebalances(tmp_path / "later", 3)
    reads = record_reads(monkeypatch)
    rebalance_reader, clock = reader(tmp_path)
    assert [one.generation_id for one in rebalance_reader.last(ahead).lines] == [2, 1]
    group_with_rebalances(tmp_path, 3)
    clock.now_seconds += CACHE_SECONDS - 1
    assert rebalance_reader.last(ahead).lines[0].generation_id == 2
    assert len(reads) == 2, "each table is read once"
    clock.now_seconds += 1
    assert rebalance_reader.last(ahead).lines[0].generation_id == 3
    assert len(reads) == 4


def test_the_commit_gap_is_shown_with_its_rebalance(tmp_path: Path) -> None:
    """Commit gaps have their own table. A row is written when the gap is known."""
    record = group_with_rebalances(tmp_path, 2)
    position = record.snapshot.position
    assert position is not None
    closed = CommitGap("g", position, 2, 12_000, None, "orders", 3, 12_000, 0, 700, 40, "all_committed")
    rows = arrow_table(COMMIT_GAPS, commit_gap_rows(CLUSTER, [closed])[COMMIT_GAPS])
    write_deltalake(str(tmp_path / COMMIT_GAPS.name), rows, partition_by=list(PARTITIONED_BY))
    newest, before = reader(tmp_path)[0].last(record).lines
    assert "no member committed for 12.0 s (usual interval: 0.7 s)" in newest.text
    assert "no member committed" not in before.text
    assert (newest.recommitted_records, before.recommitted_records) == (40, None)
    assert newest.text.endswith("40 records were committed twice")


@pytest.mark.parametrize("time_ms", [10**18, -(10**18)])
def test_a_rebalance_with_a_time_outside_of_the_calendar_is_shown(tmp_path: Path, time_ms: int) -> None:
    """A broker with a wrong clock writes such times. The tables contain the nearest time of the calendar."""
    record = record_of("g", [generation(1, NOW_MS / 1000 - time_ms / 1000, "range", [A])], tmp_path)
    (line,) = reader(tmp_path)[0].last(record).lines
    assert line.timestamp_ms == (LAST_MS if time_ms > 0 else 0)
    page = group_page(record, tmp_path)
    assert page.status == "200 OK"
    assert str(escape(line.text)) in page.text


def test_a_group_whose_earlier_record_has_a_time_outside_of_the_calendar_has_a_page(tmp_path: Path) -> None:
    """The timeline reads the date of the newest rebalance before its window."""
    events = [generation(1, NOW_MS / 1000 + 10**15, "range", [A]), generation(2, 60, "range", [A, B])]
    assert group_page(record_of("g", events, tmp_path), tmp_path).status == "200 OK"


def group_page(record: GroupState, tables: Path) -> Answer:
    """Return the page of the group "g"."""
    state = MonitorState()
    state.put_batch([record], [])
    state.put_health(positions=dict.fromkeys(range(PARTITIONS), 1_000), ready=True, was_ready=True)
    state.put_sample(*simulate({})[:2])
    return ask(pages_of(state, tables), "/groups/g")


def record_reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Record each read of a table."""
    reads: list[object] = []
    original = streaming.page.rebalances.stored_rows

    def read_and_record(*arguments: object, **equal: object) -> object:
        reads.append(arguments)
        return original(*arguments, **equal)  # type: ignore[arg-type]

    monkeypatch.setattr(streaming.page.rebalances, "stored_rows", read_and_record)
    return reads


def test_without_a_table_an_error_is_returned(tmp_path: Path) -> None:
    """Tests rule 3."""
    rebalances = reader(tmp_path / "nowhere")[0].last(group_with_rebalances(tmp_path))
    assert rebalances == LastRebalances(error="the table rebalances cannot be read (NoTableError)")


def test_for_a_group_without_rebalances_no_table_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = record_reads(monkeypatch)
    assert reader(tmp_path)[0].last(record_of("g", [])) == LastRebalances()
    assert reads == []
