"""Tests of reading tables without Spark, for any cluster name and without a crash at the end of the process."""

from __future__ import annotations

import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import streaming.delta.stored_table
from streaming.cli.text.stored import read_active_conditions, read_commit_gaps, read_condition_changes
from streaming.combine.partition_state import DecodeFailure
from streaming.delta.commit_order import CommittedTable
from streaming.delta.on_disk import DeltaTables
from streaming.delta.rows import arrow_table, quarantine_rows
from streaming.delta.stored import stored_rows
from streaming.delta.stored_table import TableReadError
from streaming.delta.table_files import find_table_damage
from streaming.delta.tables import GROUP_CONDITIONS, QUARANTINE
from streaming.page.timeline.queries import GroupTables
from streaming.page.timeline.window import Window
from streaming.spark.folder import LocalFolder

DAY_MS = 86_400_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Create a table of two clusters with unusual names, with two records per day on three days."""
    tables = DeltaTables(str(tmp_path))
    tables.open_all()
    for cluster in ("it's", "a\\' OR true --"):
        for day in (20_000, 20_001, 20_002):
            records = [
                DecodeFailure(0, at, day * DAY_MS, b"k", None, "truncated", None) for at in (2 * day, 2 * day + 1)
            ]
            tables.append(QUARANTINE, arrow_table(QUARANTINE, quarantine_rows(cluster, records)[QUARANTINE]))
    return tmp_path


@pytest.mark.parametrize(
    ("cluster", "dates", "offsets"),
    [
        ("it's", None, [40_000, 40_001, 40_002, 40_003, 40_004, 40_005]),  # a quote within a name
        ("a\\' OR true --", [date(2024, 10, 5)], [40_002, 40_003]),  # a name with an SQL injection
        ("it's", [date(2024, 10, 6), date(2024, 10, 4)], [40_000, 40_001, 40_004, 40_005]),  # in the order of the log
        ("it's", [], []),  # no days, so no rows
        ("", None, []),  # a cluster without rows
    ],
)
def test_the_requested_rows_are_returned(
    root: Path, cluster: str, dates: Sequence[date] | None, offsets: Sequence[int]
) -> None:
    rows = stored_rows(str(root), QUARANTINE, dates, cluster=cluster)
    assert [row["offsets_topic_offset"] for row in rows] == offsets
    assert {row["cluster"] for row in rows} <= {cluster}


def test_a_damaged_file_is_an_error_of_one_line(root: Path) -> None:
    damaged = next((root / QUARANTINE.name).rglob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:50])
    with pytest.raises(TableReadError, match=r"quarantine cannot be read .*: check that the storage is reachable"):
        stored_rows(str(root), QUARANTINE)


def test_a_file_that_makes_delta_rs_panic_is_a_read_error_and_damage_that_a_repair_finds(root: Path) -> None:
    """With a damaged schema in a file, `history` ended with a traceback of Rust: PanicException is no Exception."""
    file = next((root / QUARANTINE.name).rglob("*.parquet"))
    schema = pq.ParquetFile(file).metadata.metadata[b"ARROW:schema"]
    words = np.frombuffer(b64decode(schema), np.int32).copy()
    words[np.flatnonzero(words == 64)[-1]] = 3  # a column contains integers with 3 bits
    file.write_bytes(file.read_bytes().replace(schema, b64encode(words)))
    with pytest.raises(TableReadError, match=r"cannot be read \(Int type with bit width of 3 .*--repair-tables"):
        stored_rows(str(root), QUARANTINE)
    table, day = CommittedTable(str(root), QUARANTINE, QUARANTINE.schema.names), file.parent.name.removeprefix("date=")
    with pytest.raises(TableReadError, match="cannot be read"):
        table.snapshot_rows(table.version, day, 0, ["record_time"], 0, 10)
    assert find_table_damage(LocalFolder(root / QUARANTINE.name), reads_rows=True)


def test_a_file_that_only_queries_cannot_read_is_damage_that_a_repair_finds(root: Path) -> None:
    """Arrow read the file, but the restore did not. So the cluster was never ready, and the repair found no damage."""
    file = next((root / QUARANTINE.name).rglob("*.parquet"))
    stored = bytearray(file.read_bytes())
    stored[-11] ^= 64  # the end of the footer
    file.write_bytes(stored)
    assert pq.ParquetFile(file).read(use_threads=False).num_rows == 2
    with pytest.raises(TableReadError, match="cannot be read"):
        stored_rows(str(root), QUARANTINE)
    damage = find_table_damage(LocalFolder(root / QUARANTINE.name), reads_rows=True)
    assert damage is not None
    assert file.name in damage.name


def test_a_checkpoint_that_makes_delta_rs_panic_is_a_read_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """About one of 1,000 changed bytes in a checkpoint has this effect."""

    class PanicException(BaseException):
        """A panic of delta-rs."""

    def panic(*_: object) -> None:
        raise PanicException("TokioMultiThreadExecutor has crashed: RecvError")

    monkeypatch.setattr(streaming.delta.stored_table, "DeltaTable", panic)
    with pytest.raises(TableReadError, match=r"cannot be read \(TokioMultiThreadExecutor has crashed"):
        stored_rows("tables", QUARANTINE)


@pytest.mark.parametrize("microseconds", [1 << 62, -(1 << 62)])
def test_a_damaged_time_is_a_read_error_and_damage_that_a_repair_finds(tmp_path: Path, microseconds: int) -> None:
    """One changed byte made a time later than the year 9999. The reader failed without the remedy."""
    tables = DeltaTables(str(tmp_path))
    tables.open_all()
    row = {
        "cluster": "a",
        "date": date(1970, 1, 1),
        "sampled_time": 0,
        "group_id": "g",
        "condition": "rebalance_storm",
        "active": True,
        "is_repeated": False,
        "since_time": microseconds,
        "detail": "",
        "read_up_to_time": None,
    }
    tables.append(GROUP_CONDITIONS, arrow_table(GROUP_CONDITIONS, [row]))
    remedy = r"cannot be read \(date value out of range\): .* run `rebalance-monitor rebuild --repair-tables`"
    with pytest.raises(TableReadError, match=remedy):
        stored_rows(str(tmp_path), GROUP_CONDITIONS)
    with pytest.raises(TableReadError, match=remedy):
        GroupTables(str(tmp_path), "a", "g").conditions(Window(0, DAY_MS))
    damage = find_table_damage(LocalFolder(tmp_path / GROUP_CONDITIONS.name), reads_rows=True)
    assert damage is not None
    assert damage.what == "has rows that cannot be read"


def test_reading_starts_no_thread_that_can_abort_the_exit(root: Path) -> None:
    """One of six runs of `history` ended by SIGABRT: https://github.com/apache/arrow/issues/34314.

    Arrow's datasets start the threads, so the module must not be imported.
    """
    program = (
        "import sys\n"
        "from streaming.delta.stored import stored_rows\n"
        "from streaming.delta.tables import QUARANTINE\n"
        f"print(len(stored_rows({str(root)!r}, QUARANTINE)), 'pyarrow.dataset' in sys.modules)\n"
    )
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert completed.stdout.split() == ["12", "False"], completed.stderr


@pytest.mark.parametrize("read", ["gaps", "changes", "active conditions"])
def test_a_table_that_cannot_be_read_is_not_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str) -> None:
    """The object store did not answer, and `history` showed no commit gaps and no conditions, as if there were none."""
    root = str(tmp_path)
    rows: Callable[[], object] = {
        "gaps": lambda: read_commit_gaps(root, None, "orders"),
        "changes": lambda: read_condition_changes(root, None, "orders"),
        "active conditions": lambda: read_active_conditions(root, None, "orders"),
    }[read]
    assert not rows(), "a monitor of an earlier version did not create the table"

    def refuse(*_: object) -> None:
        raise OSError("the object store does not answer")

    monkeypatch.setattr(streaming.delta.stored_table, "DeltaTable", refuse)
    with pytest.raises(TableReadError, match="the object store does not answer"):
        rows()
