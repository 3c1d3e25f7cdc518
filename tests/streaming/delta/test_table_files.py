"""Tests that a damaged table is refused with one line before delta-rs opens it, and can be repaired."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from streaming.delta.table_files import LOG, TableDamagedError, check_tables, find_table_damage
from streaming.delta.table_repair import repair_table
from streaming.delta.tables import REBALANCES
from streaming.errors import STAYS
from streaming.spark.folder import LocalFolder
from tests.streaming.spark.checkpoints import as_nobody, empty, fill_with_garbage, truncate

Damage = Callable[[Path], None]
VERSIONS = 8
CHECKPOINT = 4


@pytest.fixture(scope="session")
def undamaged_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a table with eight appends of one row each, and with a checkpoint after the fifth append."""
    table = tmp_path_factory.mktemp("tables") / REBALANCES.name
    for version in range(VERSIONS):
        properties = CommitProperties(app_transactions=[Transaction("a", version)])
        rows = pa.table({"cluster": ["a b/ü"], "row": [version]})
        write_deltalake(str(table), rows, mode="append", partition_by=["cluster"], commit_properties=properties)
        if version == CHECKPOINT:
            DeltaTable(str(table)).create_checkpoint()
    return table


@pytest.fixture
def table(undamaged_table: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(undamaged_table, tmp_path / REBALANCES.name))


def entry(version: int) -> str:
    return f"{LOG}/{version:020}.json"


def first_rows(table: Path) -> Path:
    """Return the file with the rows of the first version. The log entry of this version is no longer read."""
    row = DeltaTable(str(table), version=0).file_uris()[0]
    return table / row.partition(f"{table.name}/")[2]


FILES: Mapping[str, Callable[[Path], Path]] = {
    "the last entry": lambda table: table / entry(7),
    "an entry in between": lambda table: table / entry(6),
    "an entry before the checkpoint": lambda table: table / entry(2),
    "the checkpoint": lambda table: table / LOG / f"{CHECKPOINT:020}.checkpoint.parquet",
    "the hint": lambda table: table / LOG / "_last_checkpoint",
    "rows": first_rows,
}
DAMAGES: Mapping[str, Damage] = {
    "emptied": empty,
    "truncated": truncate,
    "garbage": fill_with_garbage,
    "removed": Path.unlink,
}
REFUSED: Mapping[str, tuple[int | None, str]] = {
    "the last entry": (7, "restored to version 6"),
    "an entry in between": (6, "restored to version 5"),
    "the checkpoint": (8, "removed"),
    "rows": (7, "1 damaged file of rows removed"),
}
"""Remaining rows after a repair, and a part of its message. Damage to all other files has no effect."""


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_table_is_refused_by_name_and_repaired_without_deleting_files(
    table: Path, file: str, damage: str
) -> None:
    """Some damage ended every start in a traceback. An empty log entry was skipped, and its rows were lost."""
    DAMAGES[damage](FILES[file](table))
    if file not in REFUSED or (file, damage) == (
        "the last entry",
        "removed",
    ):  # without its last entry it is the table of the version before
        assert find_table_damage(LocalFolder(table)) is None
        return
    with pytest.raises(
        TableDamagedError, match=f"^table {table} is damaged .*: run `rebalance-monitor rebuild"
    ) as refused:
        check_tables(str(table.parent))
    assert len(str(refused.value).splitlines()) == 1
    assert refused.value.exit_code == STAYS
    before = {path.name for path in table.rglob("*") if path.is_file()}
    aside = table.with_name(f"{table.name}.aside")
    repaired = repair_table(LocalFolder(table), aside)
    rows, sentence = REFUSED[file]
    assert sentence in repaired
    assert str(aside) in repaired or not aside.exists()
    assert DeltaTable(str(table)).to_pyarrow_table().num_rows == rows
    after = {path.name for folder in (table, aside) for path in folder.rglob("*") if path.is_file()}
    assert before <= after
    check_tables(str(table.parent))


def test_a_missing_entry_with_the_version_of_the_last_checkpoint_is_refused_and_replaced(table: Path) -> None:
    """With a real table, readers needed only the checkpoint, but each append failed with "Invalid table version"."""
    DeltaTable(str(table)).create_checkpoint()
    (table / entry(7)).unlink()
    with pytest.raises(TableDamagedError, match=rf"{entry(7)} is missing, but its checkpoint exists"):
        check_tables(str(table.parent))
    aside = table.with_name("aside")
    repaired = repair_table(LocalFolder(table), aside)
    assert repaired == f"{table}: {entry(7)} replaced, because its checkpoint contains all its actions"
    assert not aside.exists()
    check_tables(str(table.parent))
    rows = DeltaTable(str(table)).to_pyarrow_table()
    assert rows.num_rows == VERSIONS
    write_deltalake(str(table), rows.slice(0, 1), mode="append", partition_by=["cluster"])
    assert DeltaTable(str(table)).to_pyarrow_table().num_rows == VERSIONS + 1


def test_a_table_that_cannot_be_repaired_is_moved_aside_as_a_whole(table: Path) -> None:
    for path in (table / LOG).iterdir():
        fill_with_garbage(path)
    aside = table.with_name("aside")
    repaired = repair_table(LocalFolder(table), aside)
    moved_to = f"{aside}/{table.name}"
    assert repaired == f"{table}: cannot be repaired; it was moved to {moved_to}, and the monitor creates a new table"
    assert not table.exists()
    check_tables(str(table.parent))


def test_rows_without_a_log_are_a_damaged_table_and_a_missing_folder_is_not(table: Path, tmp_path: Path) -> None:
    """A new log would not name the old files, and the next maintenance would delete them."""
    shutil.rmtree(table / LOG)
    with pytest.raises(TableDamagedError, match=r"_delta_log has no entry"):
        check_tables(str(tmp_path))
    assert "creates a new table" in repair_table(LocalFolder(table), table.with_name("aside"))
    check_tables(str(tmp_path / "not" / "there"))


@pytest.mark.parametrize(
    "left", [f"{LOG}/_commit_8a7f.json.tmp", f"{LOG}/.00000000000000000008.json.tmp", "part-0.parquet"]
)
def test_files_of_a_killed_writer_are_not_damage(table: Path, left: str) -> None:
    (table / left).write_bytes(b"")
    check_tables(str(table.parent))


@pytest.mark.parametrize(
    "unreadable", [f"{REBALANCES.name}/{entry(7)}", f"{REBALANCES.name}/{LOG}", REBALANCES.name, ""]
)
def test_tables_that_the_monitor_may_not_use_are_refused_by_name(table: Path, unreadable: str) -> None:
    """A different user wrote the tables, and the append of each batch failed for ever."""
    with tempfile.TemporaryDirectory() as root:  # other users cannot enter pytest's folder
        shutil.copytree(table, Path(root, table.name))

        def action() -> None:
            Path(root, unreadable).chmod(0)
            check_tables(root)

        message = as_nobody(action, Path(root))
    assert message.startswith(f"TableDamagedError: the tables in {root} cannot be used ({root}")
    assert "let the user of the monitor" in message
