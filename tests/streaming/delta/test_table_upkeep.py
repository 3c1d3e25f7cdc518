"""Tests that the log, the files and the handle of a table stay small over a month."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from streaming.delta.on_disk import COMMITS_PER_CHECKPOINT, DeltaTables
from streaming.delta.table_files import UnusableTableError, check_tables, log_entry
from streaming.delta.table_repair import repair_table
from streaming.delta.tables import GROUP_LAG, QUARANTINE, REBALANCES, TABLES
from streaming.run.samples.upkeep import Upkeep
from streaming.spark.folder import LocalFolder
from tests.bench.table_history import TableHistory, write_history
from tests.streaming.delta.test_delta import DAY_MS, LONG_AGO, open_tables, rows_at, stored_offsets
from tests.streaming.delta.test_table_files import fill_the_rows
from tests.streaming.spark.checkpoints import empty, truncate

MONTH = TableHistory(days=30, commits_per_day=48)
PROPERTIES = {
    "delta.logRetentionDuration": "interval 2 hours",
    "delta.deletedFileRetentionDuration": "interval 2 hours",
    "delta.checkpointInterval": str(COMMITS_PER_CHECKPOINT),
}


def log_files(root: Path) -> list[str]:
    """Return the names of the files in the log folder."""
    return sorted(path.name for path in (root / QUARANTINE.name / "_delta_log").iterdir())


def data_files(root: Path) -> list[str]:
    """Return the names of the table's data files."""
    return sorted(path.name for path in (root / QUARANTINE.name).rglob("part-*.parquet"))


def remove_properties(root: Path, names: Iterable[str]) -> None:
    """Remove properties from a table, so that it looks like a table of an older monitor."""
    folder = root / QUARANTINE.name / "_delta_log"
    entry = folder / "00000000000000000000.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        for name in names:
            action.get("metaData", {}).get("configuration", {}).pop(name, None)
    entry.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


@pytest.fixture
def after_a_month(tmp_path: Path) -> Path:
    """Create tables that an older monitor wrote for 30 days, without the current properties."""
    open_tables(tmp_path).append_batch(QUARANTINE, rows_at([0]), 0)
    remove_properties(tmp_path, PROPERTIES)
    write_history(tmp_path / QUARANTINE.name, "quarantine/one", MONTH)
    return tmp_path


def test_maintenance_removes_a_month_of_log_entries_and_files_and_no_row(after_a_month: Path) -> None:
    """30 days of log entries remained. delta-rs lists all of them at each append: 1 s with 50,000 entries."""
    rows = stored_offsets(after_a_month)
    commits = MONTH.days * MONTH.commits_per_day
    assert len(log_files(after_a_month)) > commits
    assert len(data_files(after_a_month)) > commits
    assert open_tables(after_a_month).tidy(LONG_AGO) == {}
    assert stored_offsets(after_a_month) == rows
    assert len(log_files(after_a_month)) < 2 * MONTH.commits_per_day, "entries of the last two hours and a checkpoint"
    assert len(data_files(after_a_month)) < MONTH.days + 2 * MONTH.commits_per_day, (
        "files in use, and files that were just replaced"
    )


def test_batches_are_still_known_after_their_log_entries_were_removed(after_a_month: Path) -> None:
    """Every checkpoint keeps the transaction identifiers. Without them, a repeated batch would be written twice."""
    last = DeltaTable(str(after_a_month / QUARANTINE.name)).transaction_version("quarantine/one")
    assert last is not None
    tables = open_tables(after_a_month)
    tables.tidy(LONG_AGO)
    rows = stored_offsets(after_a_month)
    for writer in (tables, open_tables(after_a_month)):
        assert not writer.append_batch(QUARANTINE, rows_at([7]), last)
        assert not writer.append_batch(QUARANTINE, rows_at([7]), 0)
    assert stored_offsets(after_a_month) == rows
    assert tables.append_batch(QUARANTINE, rows_at([7]), last + 1)


def test_tables_of_an_older_monitor_get_the_properties_at_the_first_start_only(after_a_month: Path) -> None:
    table = DeltaTable(str(after_a_month / QUARANTINE.name))
    assert not PROPERTIES.items() <= table.metadata().configuration.items()
    open_tables(after_a_month)
    table.update_incremental()
    assert PROPERTIES.items() <= table.metadata().configuration.items()
    version = table.version()
    open_tables(after_a_month)
    table.update_incremental()
    assert table.version() == version, "a start without changes commits nothing"


def test_new_tables_have_the_properties_as_configured(tmp_path: Path) -> None:
    tables = DeltaTables(str(tmp_path), versions_kept_hours=6)
    tables.open_all()
    for table in TABLES:
        configuration = DeltaTable(tables.path(table)).metadata().configuration
        assert configuration["delta.logRetentionDuration"] == "interval 6 hours"
        assert configuration["delta.deletedFileRetentionDuration"] == "interval 6 hours"
        assert "delta.setTransactionRetentionDuration" not in configuration, "batch identifiers must never expire"


def test_a_reader_can_continue_with_the_version_that_it_opened(tmp_path: Path) -> None:
    """A user's query may run for minutes while maintenance replaces the files that it reads."""
    tables = open_tables(tmp_path)
    for batch_id in range(5):
        tables.append_batch(QUARANTINE, rows_at([batch_id]), batch_id)
    reader = DeltaTable(str(tmp_path / QUARANTINE.name))
    tables.append_batch(QUARANTINE, rows_at([5]), 5)
    tables.tidy(LONG_AGO)
    tables.tidy(LONG_AGO)
    assert reader.to_pyarrow_table().num_rows == 5
    assert DeltaTable(str(tmp_path / QUARANTINE.name), version=reader.version()).to_pyarrow_table().num_rows == 5


def test_a_table_has_a_checkpoint_every_few_commits_and_its_handle_stays_small(tmp_path: Path) -> None:
    """A handle keeps a separate list of files for each commit. After 2,000 appends, an append took 200 ms."""
    tables = open_tables(tmp_path)
    for batch_id in range(2 * COMMITS_PER_CHECKPOINT + 5):
        assert tables.append_batch(QUARANTINE, rows_at([batch_id]), batch_id)
    checkpoints = [name for name in log_files(tmp_path) if name.endswith(".checkpoint.parquet")]
    assert len(checkpoints) == 2
    assert stored_offsets(tmp_path) == list(range(2 * COMMITS_PER_CHECKPOINT + 5))


def test_a_checkpoint_that_cannot_be_written_loses_and_repeats_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are committed before the checkpoint. After an error, the sampler would write its rows again."""
    tables = open_tables(tmp_path)
    monkeypatch.setattr("streaming.delta.on_disk.COMMITS_PER_CHECKPOINT", 1)

    def fail(_table: DeltaTable) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(DeltaTable, "create_checkpoint", fail)
    tables.append(QUARANTINE, rows_at([1]))
    monkeypatch.undo()
    tables.append(QUARANTINE, rows_at([2]))
    assert stored_offsets(tmp_path) == [1, 2]


def test_an_append_succeeds_after_another_program_changed_the_table(tmp_path: Path) -> None:
    """A different program may change properties or merge files. Delta refuses the first append after that."""
    tables = open_tables(tmp_path)
    tables.append_batch(QUARANTINE, rows_at([1]), 1)
    other = DeltaTable(str(tmp_path / QUARANTINE.name))
    other.alter.set_table_properties({"delta.appendOnly": "false"})
    assert tables.append_batch(QUARANTINE, rows_at([2]), 2)
    other.update_incremental()
    other.optimize.compact()
    assert tables.append_batch(QUARANTINE, rows_at([3]), 3)
    assert stored_offsets(tmp_path) == [1, 2, 3]


FEATURES: Mapping[str, Mapping[str, object]] = {
    "to read": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["x"], "writerFeatures": ["x"]},
    "to write": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking", "domainMetadata"]},
    "of a later format": {"minReaderVersion": 99, "minWriterVersion": 99},
}


@pytest.mark.parametrize("feature", FEATURES)
def test_a_table_with_an_unsupported_feature_is_refused_and_no_repair_moves_it(tmp_path: Path, feature: str) -> None:
    """The start named the repair, and the repair moved the whole table. Or the query failed for ever."""
    DeltaTables(str(tmp_path)).open_all()
    table = tmp_path / REBALANCES.name
    (table / log_entry(1)).write_text(json.dumps({"protocol": FEATURES[feature]}))
    unsupported = f"^table {table} has a Delta feature that this monitor does not support .*remove the feature"
    for use in (
        lambda: check_tables(str(tmp_path)),
        lambda: DeltaTables(str(tmp_path)).open_all(),
        lambda: repair_table(LocalFolder(table), tmp_path / "aside", lambda _: None),
    ):
        with pytest.raises(UnusableTableError, match=unsupported) as refused:
            use()
        assert "repair" not in str(refused.value)
    assert (table / log_entry(1)).exists()


def test_a_table_whose_old_log_entries_were_removed_by_another_process_is_still_the_same_table(tmp_path: Path) -> None:
    """The run ended with the advice to restore the table from a backup. But no row was missing.

    A second monitor shortened the log while the brokers of the first one did not answer for some hours.
    """
    tables, other = open_tables(tmp_path), open_tables(tmp_path, "other")
    tables.append_batch(QUARANTINE, rows_at([0]), 0)
    for batch_id in range(2 * COMMITS_PER_CHECKPOINT):
        other.append_batch(QUARANTINE, rows_at([1]), batch_id)
    some_hours_ago = time.time() - 3 * 3600
    for path in (tmp_path / QUARANTINE.name / "_delta_log").iterdir():
        os.utime(path, (some_hours_ago, some_hours_ago))
    other.tidy(LONG_AGO)
    assert log_files(tmp_path)[0] != "00000000000000000000.json"
    assert tables.last_batch() == 0
    assert tables.append_batch(QUARANTINE, rows_at([2]), 1)


def test_a_table_that_was_replaced_while_the_monitor_ran_is_not_used(tmp_path: Path) -> None:
    """If the new table had more versions than the old table, the monitor continued with the new table."""
    for root, commits in ((tmp_path / "old", 1), (tmp_path / "new", 3)):
        tables = open_tables(root)
        for batch_id in range(commits):
            tables.append_batch(QUARANTINE, rows_at([batch_id]), batch_id)
    tables = open_tables(tmp_path / "old")
    shutil.rmtree(tmp_path / "old" / QUARANTINE.name)
    shutil.copytree(tmp_path / "new" / QUARANTINE.name, tmp_path / "old" / QUARANTINE.name)
    (failure,) = tables.tidy(LONG_AGO).values()
    assert "was replaced" in str(failure)
    with pytest.raises(DeltaError, match="was replaced"):
        tables.append(QUARANTINE, rows_at([7]))
    assert stored_offsets(tmp_path / "old") == [0, 1, 2]


def test_files_of_a_killed_writer_are_removed(after_a_month: Path) -> None:
    """A file that no log entry names was never removed, because vacuum only used the removals in the log."""
    tables = open_tables(after_a_month)
    orphan = next((after_a_month / QUARANTINE.name).rglob("part-*.parquet")).with_name("part-orphan.parquet")
    orphan.write_bytes(b"half a file")
    tables._versions_kept_hours = 0
    tables.tidy(LONG_AGO)
    assert not orphan.exists()


def append_days(root: Path, tables: DeltaTables) -> Path:
    """Append three rows of each of two days to two tables. Return a data file of the first day of the first table."""
    for day in range(2):
        for number in range(3):
            row = {"cluster": "c", "date": date(2024, 10, 4 + day), "offsets_topic_offset": number}
            tables.append(REBALANCES, pa.Table.from_pylist([row], schema=REBALANCES.schema))
            tables.append(QUARANTINE, rows_at([number], day=20_000 + day))
    return min((root / REBALANCES.name).rglob("date=2024-10-04/part-*.parquet"))


def files_per_day(table: str) -> Mapping[str, int]:
    """Return the number of data files of each day in the last version."""
    adds = pa.table(DeltaTable(table).get_add_actions(flatten=True))
    return Counter(map(str, adds["partition.date"].to_pylist()))


def test_a_damaged_file_stops_only_the_merge_of_its_own_day(tmp_path: Path) -> None:
    """The first error ended the maintenance of this table and of all later tables. Their logs grew without a limit."""
    tables = open_tables(tmp_path)
    empty(append_days(tmp_path, tables))
    assert tables.tidy(LONG_AGO).keys() == {tables.path(REBALANCES)}
    assert files_per_day(tables.path(REBALANCES)) == {"2024-10-04": 3, "2024-10-05": 1}
    assert files_per_day(tables.path(QUARANTINE)) == {"2024-10-04": 1, "2024-10-05": 1}
    last = DeltaTable(tables.path(REBALANCES)).version()
    assert (tmp_path / REBALANCES.name / "_delta_log" / f"{last:020}.checkpoint.parquet").exists()
    assert tables.tidy(date(2024, 10, 5)) == {}, "the day of the damaged file left the retention"


@pytest.mark.parametrize("damage", [empty, truncate, fill_the_rows])
def test_the_log_names_the_damaged_file_and_the_remedy_and_the_remedy_helps(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None]
) -> None:
    """The log had one line with an internal error of Parquet, which named no remedy."""
    tables = open_tables(tmp_path)
    damaged = append_days(tmp_path, tables)
    damage(damaged)
    upkeep = Upkeep(tables, 10**4, 0.0)
    upkeep.start_if_due(20_001 * DAY_MS)
    upkeep.close()
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert line.startswith(f"the maintenance of table {tables.path(REBALANCES)} failed (")
    assert damaged.name in line
    assert "stop the monitor and run `rebalance-monitor rebuild --repair-tables`" in line
    repair_table(LocalFolder(tmp_path / REBALANCES.name), tmp_path / "aside", lambda _: None)
    assert open_tables(tmp_path).tidy(LONG_AGO) == {}


@pytest.mark.parametrize(
    ("deletion_times_ms", "kept", "why"),
    [
        ([None, None], [1, 2], "no broker has proven a time: the clock of the monitor can be 100 days ahead"),
        ([20_000 * DAY_MS], [1, 2], "both days are within the retention"),
        ([20_001 * DAY_MS], [2], "the first day is not within the retention"),
        ([20_001 * DAY_MS, 20_000 * DAY_MS, None], [2], "one of several clusters has proven the time"),
    ],
)
def test_maintenance_deletes_rows_only_if_a_broker_has_proven_their_age(
    tmp_path: Path, deletion_times_ms: list[int | None], kept: list[int], why: str
) -> None:
    """The first maintenance after a start with a clock 100 days ahead deleted every row."""
    tables = open_tables(tmp_path)
    for offset, day in ((1, 19_999), (2, 20_000)):
        tables.append(QUARANTINE, rows_at([offset], day))
    upkeep = Upkeep(tables, retention_days=1, maintenance_interval_seconds=0.0)
    for deletion_time_ms in deletion_times_ms:
        upkeep.start_if_due(deletion_time_ms)
        upkeep.close()
    assert stored_offsets(tmp_path) == kept, why


def test_maintenance_of_tables_without_rows_commits_nothing(tmp_path: Path) -> None:
    tables = open_tables(tmp_path)
    tables.tidy(date(2024, 10, 4))
    assert DeltaTable(tables.path(GROUP_LAG)).version() == 0
