"""Tests that a start notices missing rows at the end of a table, and refuses nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from streaming.combine.partition_state import DecodeFailure, PartitionBatch
from streaming.config.load import load_settings
from streaming.delta.on_disk import DeltaTables
from streaming.delta.table_files import check_tables, log_entry
from streaming.delta.table_repair import repair_table
from streaming.delta.tables import QUARANTINE, REBALANCES
from streaming.errors import STAYS
from streaming.run.cluster_clock import ClusterClock
from streaming.run.query import prepare
from streaming.run.query.batches import BatchSink
from streaming.run.query.last_checkpoint import CheckpointPassedError, LastCheckpoint
from streaming.run.query.prepare import Bootstrap, prepare_checkpoint
from streaming.run.query.table_progress import PROGRESS_FILE, ProgressFile, RowsMissingError
from streaming.spark.checkpoint import CheckpointDamagedError
from streaming.spark.checkpoint_files import IDENTITY, checksum
from streaming.spark.folder import LocalFolder
from streaming.state.committed_offsets import CommittedOffsets
from streaming.state.monitor_state import MonitorState
from tests.streaming.delta.test_delta import LONG_AGO, open_tables, rows_at
from tests.streaming.run.test_damaged_caches import UnreadableFolder
from tests.streaming.run.test_poller import Folder
from tests.streaming.spark.checkpoints import empty, fill_with_garbage, truncate
from tests.streaming.spark.test_checkpoint import LocalFiles, new_identity


def progress_file(at: Path, tables: DeltaTables) -> ProgressFile:
    return ProgressFile("eu", Folder(at / "checkpoint"), tables)


@pytest.fixture
def at(tmp_path: Path) -> Path:
    """Return the folder of a checkpoint and of tables with two batches and the rows of one sample."""
    tables = open_tables(tmp_path / "tables")
    for batch_id in range(2):
        tables.append_batch(QUARANTINE, rows_at([batch_id]), batch_id)
    tables.append(REBALANCES, REBALANCES.schema.empty_table())
    progress_file(tmp_path, tables).store()
    return tmp_path


def remove_last_entry(at: Path) -> None:
    (at / "tables" / QUARANTINE.name / log_entry(2)).unlink()


LOSSES: dict[str, Callable[[Path], None]] = {
    "the last entry": remove_last_entry,
    "the table": lambda at: shutil.rmtree(at / "tables" / QUARANTINE.name),
    "all tables": lambda at: shutil.rmtree(at / "tables"),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_missing_rows_at_the_end_of_a_table_end_the_start_with_the_remedy(at: Path, loss: str) -> None:
    """Delta opens such a table as an older version, so nobody noticed that rows were missing."""
    LOSSES[loss](at)
    check_tables(str(at / "tables"))
    for _ in range(2):  # the first start has created a removed table again
        with pytest.raises(RowsMissingError, match="run `rebalance-monitor rebuild`") as refused:
            progress_file(at, open_tables(at / "tables")).check()
        assert str(refused.value).startswith(f"table {at}/tables/{QUARANTINE.name} misses its last rows (it has")
        assert len(str(refused.value).splitlines()) == 1
        assert refused.value.exit_code == STAYS


def test_rows_of_a_cluster_are_missed_also_after_a_different_cluster_has_written(at: Path) -> None:
    """A repair for the other cluster restored an older version. The versions alone no longer show the loss."""
    remove_last_entry(at)
    other = open_tables(at / "tables", "two")
    for batch_id in range(3):
        other.append_batch(QUARANTINE, rows_at([batch_id]), batch_id)
    with pytest.raises(RowsMissingError, match="it has version 4 and batch 0, but the monitor wrote version 2 and"):
        progress_file(at, open_tables(at / "tables")).check()


def test_undamaged_tables_are_not_refused(at: Path) -> None:
    tables = open_tables(at / "tables")
    progress_file(at, tables).check()
    tables.append_batch(QUARANTINE, rows_at([2]), 2)
    tables._versions_kept_hours = 0
    assert tables.tidy(LONG_AGO) == {}
    progress_file(at, open_tables(at / "tables")).check()


def test_a_new_folder_of_tables_is_not_refused(at: Path) -> None:
    """Other errors recommend to set paths.tables to a different folder."""
    progress_file(at, open_tables(at / "other")).check()


def test_a_new_checkpoint_after_a_repair_is_not_refused(at: Path) -> None:
    """`rebuild --repair-tables` removes the damaged end of a log, and creates a checkpoint without the file."""
    fill_with_garbage(at / "tables" / QUARANTINE.name / log_entry(2))
    repair_table(LocalFolder(at / "tables" / QUARANTINE.name), at / "aside", lambda _: None)
    shutil.rmtree(at / "checkpoint")
    progress_file(at, open_tables(at / "tables", "new")).check()


@pytest.mark.parametrize("damage", [empty, truncate, fill_with_garbage])
def test_a_damaged_file_is_ignored_with_one_warning(
    at: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    damage(at / "checkpoint" / PROGRESS_FILE)
    progress_file(at, open_tables(at / "tables")).check()
    (line,) = caplog.messages
    assert line.startswith(f"eu: {PROGRESS_FILE} cannot be read and is ignored. Missing rows of tables are not")


def test_an_unreadable_file_is_ignored_with_one_warning(at: Path, caplog: pytest.LogCaptureFixture) -> None:
    ProgressFile("eu", UnreadableFolder(at / "checkpoint"), open_tables(at / "tables")).check()
    assert len(caplog.messages) == 1


def test_the_file_is_written_only_if_a_table_has_changed(at: Path) -> None:
    """Most batches have no rows for tables. An object store needs a quarter of a second for each write."""
    tables = open_tables(at / "tables")
    file = progress_file(at, tables)
    file.store()
    (at / "checkpoint" / PROGRESS_FILE).unlink()
    file.store()
    assert not (at / "checkpoint" / PROGRESS_FILE).exists()
    tables.append_batch(QUARANTINE, rows_at([2]), 2)
    file.store()
    assert (at / "checkpoint" / PROGRESS_FILE).exists()


def test_each_batch_writes_the_file_after_its_rows(at: Path) -> None:
    """The file must not have more than the tables, because the start would be refused after each kill."""
    tables, files = open_tables(at / "tables"), Folder(at / "new")
    sink = BatchSink(
        cluster="eu",
        monitor_state=MonitorState(),
        committed_offsets=CommittedOffsets(),
        tables=tables,
        files=files,
        bootstrap=Bootstrap(),
        clock=ClusterClock("eu", lambda: 0, lambda: 0),
        on_end=lambda: None,
    )
    failure = DecodeFailure(0, 7, 0, b"k", None, "truncated", None)
    batch = PartitionBatch(0, 7, 7, -1, {}, (failure,), b"")
    sink._append(sink._new_rows([], [batch], [], {}), 5)
    stored = msgspec.json.decode(files.read(PROGRESS_FILE) or b"")
    assert stored["progress"][QUARANTINE.name] == [3, 5]


def test_the_start_checks_the_file_and_the_checksums(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start with an undamaged checkpoint continues."""
    monkeypatch.setenv("REBALANCE_MONITOR_PATHS__TABLES", str(at / "tables"))
    settings = load_settings(None)
    files = LocalFiles(at / "checkpoint")
    monkeypatch.setattr(LocalFiles, "make_folder", lambda *_: None)
    monkeypatch.setattr(prepare, "Files", lambda _, root: LocalFiles(Path(root)))
    name = f"origin/{REBALANCES.name}.positions"
    files.write(name, bytes(24))
    cluster, partitions = settings.kafka.cluster, settings.spark.shuffle_partitions
    identity = new_identity(cluster, partitions, origin={name: checksum(bytes(24))})
    files.write(IDENTITY, msgspec.json.encode(msgspec.structs.replace(identity, checkpoint_id="one")))
    files.write("query/offsets/9", b"")

    def start() -> Bootstrap:
        return prepare_checkpoint(None, settings, files, DeltaTables(str(at / "tables")))[1]  # type: ignore[arg-type]

    assert len(start().positions[REBALANCES.name]) == 3
    assert LastCheckpoint(lambda: LocalFiles(at / "tables"), cluster, settings.source.kind).read() == "one"
    files.write(name, bytes(16))
    with pytest.raises(CheckpointDamagedError):
        start()
    remove_last_entry(at)
    with pytest.raises(RowsMissingError):
        start()


def test_the_start_checks_if_a_different_checkpoint_wrote_the_last_rows(
    at: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REBALANCE_MONITOR_PATHS__TABLES", str(at / "tables"))
    settings = load_settings(None)
    monkeypatch.setattr(LocalFiles, "make_folder", lambda *_: None)
    monkeypatch.setattr(prepare, "Files", lambda _, root: LocalFiles(Path(root)))
    monkeypatch.setattr(prepare, "summarize_tables", lambda *_, **__: Bootstrap())

    def start(checkpoint: str) -> None:
        files = LocalFiles(at / checkpoint)
        prepare_checkpoint(None, settings, files, DeltaTables(str(at / "tables")))  # type: ignore[arg-type]

    start("earlier")
    start("new")
    start("new")
    with pytest.raises(CheckpointPassedError):
        start("earlier")
