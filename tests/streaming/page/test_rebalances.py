"""The story on the page is that of the tables: read as little as needed, and again when there is more."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from deltalake import DeltaTable, write_deltalake

import streaming.page.rebalances
from streaming.combine.gaps import CommitGap
from streaming.delta.rows import arrow_table, commit_gap_rows
from streaming.delta.tables import COMMIT_GAPS, PARTITIONED_BY, REBALANCES
from streaming.evaluation.group_update import GroupState
from streaming.page.last_rebalances import LastRebalances
from streaming.page.rebalances import CACHE_SECONDS, RebalanceReader
from tests.streaming.page.scene import CLUSTER, Member, generation, record_of

A, B = Member("app-a", ["orders"]), Member("app-b", ["orders"])
DAY_SECONDS = 86_400


class Clock:
    """A clock somebody sets."""

    now_seconds = 0.0

    def __call__(self) -> float:
        """Tell the time."""
        return self.now_seconds


def reader(tables: Path) -> tuple[RebalanceReader, Clock]:
    clock = Clock()
    return RebalanceReader(str(tables), CLUSTER, clock), clock


def life(tables: Path, generations: int = 3, group_id: str = "g") -> GroupState:
    """Return a group whose second member comes and goes, a day between."""
    events = [
        generation(number, DAY_SECONDS * (10 - number), "range", [A, B][: 1 + number % 2])
        for number in range(1, generations + 1)
    ]
    return record_of(group_id, events, tables)


def test_the_last_rebalances_are_told_the_newest_first(tmp_path: Path) -> None:
    record = life(tmp_path)
    life(tmp_path, group_id="other")
    reported = reader(tmp_path)[0].last(record).lines
    assert [(one.generation_id, one.kind) for one in reported] == [
        (3, "rebalance"),
        (2, "rebalance"),
        (1, "first_seen"),
    ]
    assert reported[1].text.startswith("app@10.4.5.98 is gone; 1 member; 6 partitions moved")


def test_no_other_days_files_are_read(tmp_path: Path) -> None:
    """Rule 1: a table of ninety days is not read for a group's last three."""
    record = life(tmp_path, 6)
    recent = msgspec.structs.replace(record.rebalance_history, recent=record.rebalance_history.recent[-2:])
    for file in DeltaTable(str(tmp_path / REBALANCES.name)).file_uris():
        if not any(f"date=2026-11-{day}" in file for day in (16, 17)):
            Path(file).unlink()
    assert len(list((tmp_path / REBALANCES.name).rglob("*.parquet"))) == 2
    reported = reader(tmp_path)[0].last(msgspec.structs.replace(record, rebalance_history=recent)).lines
    assert [one.generation_id for one in reported] == [6, 5]


def test_a_story_is_read_again_after_a_while_and_not_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 2: the registry knows of a rebalance some moments before the table does."""
    life(tmp_path, 2)
    ahead = life(tmp_path / "later", 3)
    reads = counted_reads(monkeypatch)
    ask, clock = reader(tmp_path)
    assert [one.generation_id for one in ask.last(ahead).lines] == [2, 1]
    life(tmp_path, 3)
    clock.now_seconds += CACHE_SECONDS - 1
    assert ask.last(ahead).lines[0].generation_id == 2
    assert len(reads) == 2, "one read of each table"
    clock.now_seconds += 1
    assert ask.last(ahead).lines[0].generation_id == 3
    assert len(reads) == 4


def test_how_long_nobody_committed_is_told_with_its_rebalance(tmp_path: Path) -> None:
    """It is in a table of its own, written when it is known."""
    record = life(tmp_path, 2)
    position = record.snapshot.position
    assert position is not None
    closed = CommitGap("g", position, 2, 12_000, None, "orders", 3, 12_000, 0, 700, "all_committed")
    rows = arrow_table(COMMIT_GAPS, commit_gap_rows(CLUSTER, [closed])[COMMIT_GAPS])
    write_deltalake(str(tmp_path / COMMIT_GAPS.name), rows, partition_by=list(PARTITIONED_BY))
    newest, before = reader(tmp_path)[0].last(record).lines
    assert "no member committed for 12.0 s (usual interval: 0.7 s)" in newest.text
    assert "nobody" not in before.text


def counted_reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Note every time the table is read."""
    reads: list[object] = []
    really = streaming.page.rebalances.stored_rows

    def noted(*arguments: object, **equal: object) -> object:
        reads.append(arguments)
        return really(*arguments, **equal)  # type: ignore[arg-type]

    monkeypatch.setattr(streaming.page.rebalances, "stored_rows", noted)
    return reads


def test_without_a_table_it_says_so(tmp_path: Path) -> None:
    """Rule 3."""
    found = reader(tmp_path / "nowhere")[0].last(life(tmp_path))
    assert found == LastRebalances(error="the table rebalances cannot be read (NoTableError)")


def test_a_group_without_a_story_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = counted_reads(monkeypatch)
    assert reader(tmp_path)[0].last(record_of("g", [])) == LastRebalances()
    assert reads == []
