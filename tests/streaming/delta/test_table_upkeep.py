"""What a month leaves behind: the log, the files and the handles of a table stay bounded."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pytest
from deltalake import DeltaTable

from streaming.delta.on_disk import DeltaTables
from streaming.delta.table_upkeep import COMMITS_PER_CHECKPOINT
from streaming.delta.tables import GROUP_LAG, QUARANTINE, TABLES
from tests.bench.table_history import TableHistory, write_history
from tests.streaming.delta.test_delta import LONG_AGO, opened, rows_at, stored

MONTH = TableHistory(days=30, commits_per_day=48)
KEPT = {
    "delta.logRetentionDuration": "interval 2 hours",
    "delta.deletedFileRetentionDuration": "interval 2 hours",
    "delta.checkpointInterval": str(COMMITS_PER_CHECKPOINT),
}


def log_files(root: Path) -> list[str]:
    """Return the names in the log's folder."""
    return sorted(path.name for path in (root / QUARANTINE.name / "_delta_log").iterdir())


def data_files(root: Path) -> list[str]:
    """Return the names of the table's files."""
    return sorted(path.name for path in (root / QUARANTINE.name).rglob("part-*.parquet"))


def set_back(root: Path, names: Iterable[str]) -> None:
    """Take properties off a table, as an older monitor made it."""
    folder = root / QUARANTINE.name / "_delta_log"
    entry = folder / "00000000000000000000.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        for name in names:
            action.get("metaData", {}).get("configuration", {}).pop(name, None)
    entry.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


@pytest.fixture
def after_a_month(tmp_path: Path) -> Path:
    """Tables that an older monitor wrote to for 30 days, without the properties of today."""
    opened(tmp_path).append_batch(QUARANTINE, rows_at([0]), 0)
    set_back(tmp_path, KEPT)
    write_history(tmp_path / QUARANTINE.name, "quarantine/one", MONTH)
    return tmp_path


def test_a_month_of_log_and_files_is_gone_after_upkeep_and_no_row_is(after_a_month: Path) -> None:
    """30 days of log entries stayed, and delta-rs lists them all at each append: 1 s at 50,000 entries."""
    rows = stored(after_a_month)
    commits = MONTH.days * MONTH.commits_per_day
    assert len(log_files(after_a_month)) > commits
    assert len(data_files(after_a_month)) > commits
    opened(after_a_month).tidy(LONG_AGO)
    assert stored(after_a_month) == rows
    assert len(log_files(after_a_month)) < 2 * MONTH.commits_per_day, "entries of the last two hours, and a checkpoint"
    assert len(data_files(after_a_month)) < MONTH.days + 2 * MONTH.commits_per_day, "replaced just now, or live"


def test_batches_are_still_known_when_their_log_entries_are_gone(after_a_month: Path) -> None:
    """Every checkpoint carries the transaction identifiers on. Without them a replayed batch would be written twice."""
    last = DeltaTable(str(after_a_month / QUARANTINE.name)).transaction_version("quarantine/one")
    assert last is not None
    tables = opened(after_a_month)
    tables.tidy(LONG_AGO)
    rows = stored(after_a_month)
    for writer in (tables, opened(after_a_month)):
        assert not writer.append_batch(QUARANTINE, rows_at([7]), last)
        assert not writer.append_batch(QUARANTINE, rows_at([7]), 0)
    assert stored(after_a_month) == rows
    assert tables.append_batch(QUARANTINE, rows_at([7]), last + 1)


def test_tables_of_an_older_monitor_get_the_properties_at_start_and_once(after_a_month: Path) -> None:
    table = DeltaTable(str(after_a_month / QUARANTINE.name))
    assert not KEPT.items() <= table.metadata().configuration.items()
    opened(after_a_month)
    table.update_incremental()
    assert KEPT.items() <= table.metadata().configuration.items()
    version = table.version()
    opened(after_a_month)
    table.update_incremental()
    assert table.version() == version, "a start that changes nothing commits nothing"


def test_new_tables_have_the_properties_as_configured(tmp_path: Path) -> None:
    tables = DeltaTables(str(tmp_path), versions_kept_hours=6)
    tables.open_all()
    for table in TABLES:
        configuration = DeltaTable(tables.path(table)).metadata().configuration
        assert configuration["delta.logRetentionDuration"] == "interval 6 hours"
        assert configuration["delta.deletedFileRetentionDuration"] == "interval 6 hours"
        assert "delta.setTransactionRetentionDuration" not in configuration, "batches must be known for ever"


def test_a_reader_goes_on_with_the_version_it_opened(tmp_path: Path) -> None:
    """A query on call may run for minutes while upkeep replaces the files it reads."""
    tables = opened(tmp_path)
    for batch_id in range(5):
        tables.append_batch(QUARANTINE, rows_at([batch_id]), batch_id)
    reader = DeltaTable(str(tmp_path / QUARANTINE.name))
    tables.append_batch(QUARANTINE, rows_at([5]), 5)
    tables.tidy(LONG_AGO)
    tables.tidy(LONG_AGO)
    assert reader.to_pyarrow_table().num_rows == 5
    assert DeltaTable(str(tmp_path / QUARANTINE.name), version=reader.version()).to_pyarrow_table().num_rows == 5


def test_a_table_has_a_checkpoint_every_few_commits_and_its_handle_stays_small(tmp_path: Path) -> None:
    """A handle keeps each commit's files as a piece of its own: an append took 200 ms after 2,000 appends."""
    tables = opened(tmp_path)
    for batch_id in range(2 * COMMITS_PER_CHECKPOINT + 5):
        assert tables.append_batch(QUARANTINE, rows_at([batch_id]), batch_id)
    checkpoints = [name for name in log_files(tmp_path) if name.endswith(".checkpoint.parquet")]
    assert len(checkpoints) == 2
    assert stored(tmp_path) == list(range(2 * COMMITS_PER_CHECKPOINT + 5))


def test_a_checkpoint_that_cannot_be_written_costs_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are committed before. An error would make the sampler write its rows a second time."""
    tables = opened(tmp_path)
    monkeypatch.setattr("streaming.delta.on_disk.COMMITS_PER_CHECKPOINT", 1)

    def fail(_table: DeltaTable) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(DeltaTable, "create_checkpoint", fail)
    tables.append(QUARANTINE, rows_at([1]))
    monkeypatch.undo()
    tables.append(QUARANTINE, rows_at([2]))
    assert stored(tmp_path) == [1, 2]


def test_an_append_survives_that_somebody_changes_the_table(tmp_path: Path) -> None:
    """Another program may change properties or merge files. Delta refuses the append that did not know of it."""
    tables = opened(tmp_path)
    tables.append_batch(QUARANTINE, rows_at([1]), 1)
    other = DeltaTable(str(tmp_path / QUARANTINE.name))
    other.alter.set_table_properties({"delta.appendOnly": "false"})
    assert tables.append_batch(QUARANTINE, rows_at([2]), 2)
    other.update_incremental()
    other.optimize.compact()
    assert tables.append_batch(QUARANTINE, rows_at([3]), 3)
    assert stored(tmp_path) == [1, 2, 3]


def test_what_a_killed_writer_left_behind_is_removed(after_a_month: Path) -> None:
    """A file that no log entry names was never removed: vacuum looked at the removals of the log alone."""
    tables = opened(after_a_month)
    orphan = next((after_a_month / QUARANTINE.name).rglob("part-*.parquet")).with_name("part-orphan.parquet")
    orphan.write_bytes(b"half a file")
    tables.tidy(LONG_AGO, replaced_files_kept_hours=0)
    assert not orphan.exists()


def test_upkeep_of_tables_without_rows_commits_nothing(tmp_path: Path) -> None:
    tables = opened(tmp_path)
    tables.tidy(date(2024, 10, 4))
    assert DeltaTable(tables.path(GROUP_LAG)).version() == 0
