"""Tests that a damaged table is refused with one line before delta-rs opens it, and can be repaired."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from streaming.delta.log_entries import TRANSACTIONS
from streaming.delta.on_disk import DeltaTables
from streaming.delta.table_files import LOG, UnusableTableError, check_tables, find_table_damage
from streaming.delta.table_repair import repair_table
from streaming.delta.tables import GROUP_CONDITIONS, INCIDENTS, LAG_CAUSES, PARTITIONED_BY, REBALANCES, Table
from streaming.errors import STAYS
from streaming.spark.folder import LocalFolder
from tests.streaming.spark.checkpoints import as_nobody, empty, fill_with_garbage, truncate

Damage = Callable[[Path], None]
VERSIONS = 8
CLUSTER = "a b/ü"
CHECKPOINT = 4
OF_CHECKPOINT = f"{LOG}/{CHECKPOINT:020}.checkpoint.parquet"


@pytest.fixture(scope="session")
def undamaged_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a table with eight appends of one row each, and with a checkpoint after the fifth append."""
    table = tmp_path_factory.mktemp("tables") / REBALANCES.name
    for version in range(VERSIONS):
        properties = CommitProperties(custom_metadata={TRANSACTIONS: "1"}, app_transactions=[Transaction("a", version)])
        rows = pa.table({"cluster": [CLUSTER], "date": ["2026-11-27"], "row": [version]})
        write_deltalake(str(table), rows, mode="append", partition_by=[*PARTITIONED_BY], commit_properties=properties)
        if version == CHECKPOINT:
            DeltaTable(str(table)).create_checkpoint()
    return table


@pytest.fixture
def table(undamaged_table: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(undamaged_table, tmp_path / REBALANCES.name))


def repair(table: Path, aside: Path) -> str:
    return repair_table(LocalFolder(table), aside, lambda _: None)


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
    "the checkpoint": lambda table: table / OF_CHECKPOINT,
    "the hint": lambda table: table / LOG / "_last_checkpoint",
    "rows": first_rows,
}
DAMAGES: Mapping[str, Damage] = {
    "emptied": empty,
    "truncated": truncate,
    "garbage": fill_with_garbage,
    "removed": Path.unlink,
    "replaced by a folder": lambda path: (path.unlink(), path.mkdir())[0],
}
REFUSED: Mapping[str, tuple[int | None, str]] = {
    "the last entry": (7, "restored to version 6"),
    "an entry in between": (6, "restored to version 5"),
    "the checkpoint": (8, "removed"),
    "rows": (7, "1 damaged data file removed"),
}
"""Remaining rows after a repair, and a part of its message. Damage to all other files has no effect."""


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_table_is_refused_by_name_and_repaired_without_deleting_files(
    table: Path, file: str, damage: str
) -> None:
    """Some damage ended every start in a traceback. An empty log entry was skipped, and its rows were lost."""
    DAMAGES[damage](FILES[file](table))
    if file not in REFUSED or (file, damage) == ("the last entry", "removed"):  # `run.query.table_progress` detects it
        assert find_table_damage(LocalFolder(table)) is None
        return
    message = f"^table {table} is damaged .*: run `rebalance-monitor rebuild"
    with pytest.raises(UnusableTableError, match=message) as refused:
        check_tables(str(table.parent))
    assert len(str(refused.value).splitlines()) == 1
    assert refused.value.exit_code == STAYS
    before = {path.name for path in table.rglob("*") if path.is_file()}
    aside = table.with_name(f"{table.name}.aside")
    repaired = repair(table, aside)
    rows, sentence = REFUSED[file]
    assert sentence in repaired
    assert str(aside) in repaired or not aside.exists()
    assert DeltaTable(str(table)).to_pyarrow_table().num_rows == rows
    after = {path.name for folder in (table, aside) for path in folder.rglob("*") if path.is_file()}
    assert before <= after
    check_tables(str(table.parent))


def cut_after(lines: int) -> Damage:
    """Return damage that keeps the first lines of a file."""

    def cut(path: Path) -> None:
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]))

    return cut


def fill_the_middle(path: Path) -> None:
    """Keep only the first and the last eight bytes of a Parquet file."""
    stored = path.read_bytes()
    fill_with_garbage(path)
    path.write_bytes(stored[:8] + path.read_bytes()[8:-8] + stored[-8:])


def fill_the_rows(path: Path) -> None:
    """Replace the first half of a Parquet file. The description of its columns is at its end."""
    stored = path.read_bytes()
    path.write_bytes(stored[:4] + bytes(len(stored) // 2) + stored[4 + len(stored) // 2 :])


def replace(old: str, new: str) -> Damage:
    """Return damage that replaces a text."""

    def replace_text(path: Path) -> None:
        stored = path.read_text()
        assert old in stored
        path.write_text(stored.replace(old, new))

    return replace_text


VALID_BUT_WRONG: Mapping[str, tuple[str, Damage, int | None]] = {
    "the first entry without actions": (entry(0), lambda path: path.write_text("{}"), None),
    "the first entry cut after its first line": (entry(0), cut_after(1), None),
    "the first entry cut after its second line": (entry(0), cut_after(2), None),
    "the last entry with a number as action": (entry(7), lambda path: path.write_text('{"add":5}'), 7),
    "the last entry with an action without fields": (entry(7), lambda path: path.write_text('{"add":{}}'), 7),
    "the last entry with a changed name of a field": (entry(7), replace("modificationTime", "modibicationTime"), 7),
    "the last entry with a changed name in its transaction": (entry(7), replace('"version"', '"veRsion"'), 7),
    "the last entry with statistics that are not JSON": (entry(7), replace('\\"nullCount\\"', '\\"nullCount\\b'), 7),
    "the last entry with a changed name of its rows": (entry(7), replace("/part-", ">part-"), 7),
    "an entry without a schema": (entry(6), lambda path: path.write_text('{"metaData":{"id":null}}'), 6),
    "an entry without actions": (entry(6), lambda path: path.write_text("{}"), 6),
    "an entry cut before its rows": (entry(6), cut_after(1), 6),
    "an entry cut before its transaction": (entry(6), cut_after(2), 6),
    "the last entry cut before its rows": (entry(7), cut_after(1), 7),
    "the checkpoint with garbage between its first and last bytes": (OF_CHECKPOINT, fill_the_middle, 8),
    "the checkpoint with garbage in its rows": (OF_CHECKPOINT, fill_the_rows, 8),
}
"""Files that delta-rs accepts or opens with an internal error. The number of rows after a repair is None if the table
is moved aside.
"""


@pytest.mark.parametrize("case", VALID_BUT_WRONG)
def test_a_log_that_is_valid_but_incomplete_is_refused_and_the_repair_it_names_works(table: Path, case: str) -> None:
    """The repair ended with exit code 78 and asked to run itself, for ever.

    An entry that was cut after a line was accepted. Its rows and the identifier of its batch were lost. One changed
    character in the name of a data file moved the whole table aside, because delta-rs could not remove the file.
    """
    name, damage, rows = VALID_BUT_WRONG[case]
    if name == entry(0):
        (table / OF_CHECKPOINT).unlink()
        (table / LOG / "_last_checkpoint").unlink()
    damage(table / name)
    with pytest.raises(UnusableTableError, match=rf"^table {table} is damaged \(.* --repair-tables`"):
        check_tables(str(table.parent))
    repaired = repair(table, table.with_name("aside"))
    check_tables(str(table.parent))
    assert ("creates a new table" in repaired) == (rows is None)
    if rows is not None:
        assert DeltaTable(str(table)).to_pyarrow_table().num_rows == rows


def test_an_entry_of_a_different_program_may_have_other_counts(table: Path) -> None:
    """Spark writes an entry without actions if a statement changes nothing. Its metrics have other meanings."""
    commit = '{"commitInfo":{"operation":"MERGE","operationMetrics":{"numFilesAdded":"3"},"engineInfo":"Spark"}}'
    (table / entry(VERSIONS)).write_text(f"{commit}\n")
    replace(f'"{TRANSACTIONS}":"1"', f'"{TRANSACTIONS}":"x"')(table / entry(7))
    check_tables(str(table.parent))


@pytest.mark.parametrize("damage", [fill_the_middle, fill_the_rows])
def test_a_repair_reads_all_rows_because_the_end_of_a_file_may_be_intact(table: Path, damage: Damage) -> None:
    """`rebuild` refused such a table and named the repair, and the repair found nothing."""
    damage(first_rows(table))
    assert find_table_damage(LocalFolder(table)) is None, "a start does not read all rows"
    assert "cannot be read" in str(find_table_damage(LocalFolder(table), reads_rows=True))
    repaired = repair(table, table.with_name("aside"))
    assert "1 damaged data file removed" in repaired
    assert DeltaTable(str(table)).to_pyarrow_table().num_rows == VERSIONS - 1


@pytest.mark.parametrize("unreadable", [f"{REBALANCES.name}/{entry(7)}", f"{REBALANCES.name}/{LOG}"])
def test_a_repair_does_not_move_a_table_with_an_unreadable_file_aside(table: Path, unreadable: str) -> None:
    """A file of a different owner is not damaged. The repair moved the whole table aside because of it."""
    with tempfile.TemporaryDirectory() as root:  # other users cannot enter pytest's folder
        shutil.copytree(table, Path(root, table.name))
        fill_with_garbage(first_rows(Path(root, table.name)))

        def action() -> None:
            Path(root, unreadable).chmod(0)
            repair(Path(root, table.name), Path(root, "aside"))

        assert as_nobody(action, Path(root)).startswith("PermissionError")
        assert Path(root, table.name).exists()
        assert not Path(root, "aside").exists()


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("has_parts", [False, True])
def test_a_checkpoint_of_a_different_program_is_no_damage(table: Path, has_parts: bool, is_cut: bool) -> None:
    """Rule 3. Spark can write a checkpoint in several parts, or with a UUID in its name. The repair moved the table."""
    log = table / LOG
    checkpoint = table / OF_CHECKPOINT
    rows = pq.read_table(checkpoint)
    names = [f"{number:010}.{2:010}" for number in (1, 2)] if has_parts else ["80a083e8-7026-4e79-81be-64bd76c43a11"]
    paths = [log / f"{CHECKPOINT:020}.checkpoint.{name}.parquet" for name in names]
    for at, path in enumerate(paths):
        pq.write_table(rows.slice(3, None) if at else rows.slice(0, 3 if has_parts else None), path)
    checkpoint.unlink()
    (log / "_last_checkpoint").unlink()
    for version in range(CHECKPOINT):
        (table / entry(version)).unlink()
    if is_cut:
        empty(paths[-1])
        assert str(find_table_damage(LocalFolder(table))) == f"{LOG}/{paths[-1].name} is empty"
        return
    check_tables(str(table.parent))
    assert DeltaTable(str(table)).to_pyarrow_table().num_rows == VERSIONS


def test_a_hint_with_too_many_brackets_is_ignored(table: Path) -> None:
    """The start ended with a RecursionError."""
    (table / LOG / "_last_checkpoint").write_text(10_000 * "[")
    check_tables(str(table.parent))


def test_a_missing_entry_with_the_version_of_the_last_checkpoint_is_refused_and_replaced(table: Path) -> None:
    """With a real table, readers needed only the checkpoint, but each append failed with "Invalid table version"."""
    DeltaTable(str(table)).create_checkpoint()
    (table / entry(7)).unlink()
    with pytest.raises(UnusableTableError, match=rf"{entry(7)} is missing, but the checkpoint of this version exists"):
        check_tables(str(table.parent))
    aside = table.with_name("aside")
    repaired = repair(table, aside)
    empty = "replaced by an empty entry, because the checkpoint of this version contains all actions"
    assert repaired == f"{table}: {entry(7)} {empty}"
    assert not aside.exists()
    check_tables(str(table.parent))
    rows = DeltaTable(str(table)).to_pyarrow_table()
    assert rows.num_rows == VERSIONS
    write_deltalake(str(table), rows.slice(0, 1), mode="append")
    assert DeltaTable(str(table)).to_pyarrow_table().num_rows == VERSIONS + 1


def fill_all_entries(table: Path) -> None:
    for path in (table / LOG).iterdir():
        fill_with_garbage(path)


LOSSES: Mapping[str, tuple[Damage, Collection[str]]] = {
    "garbage in rows": (lambda table: fill_the_rows(first_rows(table)), {CLUSTER}),
    "missing rows": (lambda table: first_rows(table).unlink(), {CLUSTER}),
    "the whole table": (fill_all_entries, {CLUSTER, "two"}),
    "an entry of the log": (lambda table: empty(table / entry(6)), {CLUSTER, "two"}),
    "the log's checkpoint": (lambda table: empty(table / OF_CHECKPOINT), ()),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_repair_reports_the_clusters_that_lose_rows_before_it_moves_a_file(table: Path, loss: str) -> None:
    """Rule 6. If the process was killed after a repair, or if a different cluster lost rows, nothing reported the loss.

    The repair gave the table a higher version, so the check of the progress found no loss. After the repair of a log,
    the check found the loss only until other clusters had written the same number of versions again.
    """
    write_deltalake(str(table), pa.table({"cluster": ["two"], "date": ["2026-11-27"], "row": [0]}), mode="append")
    damage, expected = LOSSES[loss]
    damage(table)
    reported: set[str] = set()

    def files() -> list[Path]:
        return sorted([*table.glob("cluster=*/*/*"), *table.glob(f"{LOG}/*.json")])

    def on_loss(clusters: Collection[str]) -> None:
        reported.update(clusters)
        if clusters:
            raise KeyboardInterrupt

    before = files()
    with pytest.raises(KeyboardInterrupt) if expected else nullcontext():
        repair_table(LocalFolder(table), table.with_name("aside"), on_loss)
    assert reported == {*expected}
    assert files() == before


def test_a_table_that_cannot_be_repaired_is_moved_aside_as_a_whole(table: Path) -> None:
    fill_all_entries(table)
    aside = table.with_name("aside")
    repaired = repair(table, aside)
    moved = f"The table was moved to {aside}/{table.name}, and the monitor creates a new table"
    assert repaired == f"{table}: cannot be repaired. {moved}"
    assert not table.exists()
    check_tables(str(table.parent))


@pytest.mark.parametrize("damage", [fill_all_entries, lambda table: empty(table / entry(6))], ids=["all", "one entry"])
def test_a_table_whose_folder_is_a_link_to_a_different_disk_is_repaired(table: Path, damage: Damage) -> None:
    """The repair renamed files. Between two file systems this fails, so each repair ended with the same error."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other_disk:
        shutil.move(table, other_disk)
        table.symlink_to(Path(other_disk, table.name))
        damage(table)
        repair(table, table.with_name("aside"))
        check_tables(str(table.parent))


def test_rows_without_a_log_are_a_damaged_table_and_a_missing_folder_is_not(table: Path, tmp_path: Path) -> None:
    """A new log would not name the old files, and the next maintenance would delete them."""
    shutil.rmtree(table / LOG)
    with pytest.raises(UnusableTableError, match=r"_delta_log has no entry"):
        check_tables(str(tmp_path))
    assert "creates a new table" in repair(table, table.with_name("aside"))
    check_tables(str(tmp_path / "not" / "there"))


@pytest.mark.parametrize(
    "left", [f"{LOG}/_commit_8a7f.json.tmp", f"{LOG}/.00000000000000000008.json.tmp", "part-0.parquet"]
)
def test_files_of_a_killed_writer_are_not_damage(table: Path, left: str) -> None:
    (table / left).write_bytes(b"")
    check_tables(str(table.parent))


def test_a_table_whose_creation_was_killed_is_created_again(tmp_path: Path) -> None:
    """Rule 1. After `kill -9` at the first commit, the start was refused, because the log had no entry."""
    log = tmp_path / REBALANCES.name / LOG
    log.mkdir(parents=True)
    check_tables(str(tmp_path))
    (log / f"{0:020}.json#1").write_bytes(b"")
    check_tables(str(tmp_path))
    DeltaTables(str(tmp_path)).open_all()
    check_tables(str(tmp_path))


@pytest.mark.parametrize("restored", [GROUP_CONDITIONS, INCIDENTS, LAG_CAUSES])
@pytest.mark.parametrize("folder", ["plain", "why?", "a*", "a b#1", "50%"])
def test_a_start_reads_the_rows_from_which_it_restores_its_state(tmp_path: Path, folder: str, restored: Table) -> None:
    """Rule 4. The monitor was never ready, `doctor` and `rebuild` succeeded, and no message named the repair.

    In a path with `?` or `*`, the check found damage in every table, and the repair removed all rows.
    """
    tmp_path = tmp_path / folder
    tables = DeltaTables(str(tmp_path))
    tables.open_all()
    row = {"cluster": "eu", "date": date(2026, 11, 26)}
    tables.append(restored, pa.Table.from_pylist([row], schema=restored.schema))
    check_tables(str(tmp_path))
    (file,) = (tmp_path / restored.name).glob("cluster=*/*/*.parquet")
    fill_the_rows(file)
    with pytest.raises(UnusableTableError, match=rf"^table .*/{restored.name} is damaged .*--repair-tables`"):
        check_tables(str(tmp_path))


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
    assert message.startswith(f"UnusableTableError: the folder {root} of the tables cannot be used ({root}")
    assert "let the user of the monitor" in message
