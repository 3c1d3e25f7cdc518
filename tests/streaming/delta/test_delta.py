"""Tests of the Delta tables with the real library: rows are written once after repeats, restarts and maintenance."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType

from streaming.combine.partition_state import DecodeFailure
from streaming.delta import on_disk as delta_module
from streaming.delta.on_disk import DeltaTables, TableVersionError
from streaming.delta.rows import arrow_table, quarantine_rows
from streaming.delta.stored import stored_rows
from streaming.delta.table_files import UnusableTableError, find_table_damage, log_entry
from streaming.delta.tables import GROUP_GENERATIONS, PARTITIONED_BY, QUARANTINE, SCHEMA_VERSION, TABLES
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.group.snapshot import GroupSnapshot
from streaming.run.writers import SecondWriterError
from streaming.spark.folder import LocalFolder
from tests.streaming.groups import written
from tests.streaming.table_rows import update_rows

DAY_MS = 86_400_000
LONG_AGO = date(2000, 1, 1)


def open_tables(root: Path, checkpoint_id: str = "one") -> DeltaTables:
    """Open the tables for a checkpoint."""
    tables = DeltaTables(str(root)).for_checkpoint(checkpoint_id)
    tables.open_all()
    return tables


def rows_at(offsets: Iterable[int], day: int = 20_000) -> pa.Table:
    """Return quarantine rows of records at these offsets. `day` is the number of days since 1970."""
    records = [DecodeFailure(0, at, day * DAY_MS, b"k", None, "truncated", None) for at in offsets]
    return arrow_table(QUARANTINE, quarantine_rows("c", records)[QUARANTINE])


def stored_offsets(root: Path) -> list[int]:
    """Return the sorted offsets in the quarantine table, with repeats."""
    table = DeltaTable(str(root / QUARANTINE.name)).to_pyarrow_table(columns=["offsets_topic_offset"])
    return sorted(table["offsets_topic_offset"].to_pylist())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def test_a_batch_appended_twice_is_stored_once(root: Path) -> None:
    tables = open_tables(root)
    assert tables.append_batch(QUARANTINE, rows_at([1, 2]), 0)
    assert not tables.append_batch(QUARANTINE, rows_at([1, 2]), 0)
    assert stored_offsets(root) == [1, 2]


def test_a_table_with_different_column_descriptions_can_be_appended_to(root: Path) -> None:
    """A changed description stopped every append to existing tables with "Cannot merge metadata"."""
    open_tables(root).append(QUARANTINE, rows_at([1]))
    described = rows_at([2])
    fields = [field.with_metadata({"comment": "other words"}) for field in described.schema]
    again = open_tables(root)
    again.append(QUARANTINE, described.cast(pa.schema(fields)))
    assert stored_offsets(root) == [1, 2]
    field = next(field for field in DeltaTable(str(root / QUARANTINE.name)).schema().fields if field.name == "reason")
    assert field.metadata["comment"] not in {"", "other words"}, "the table keeps its original description"


def test_a_batch_repeated_after_a_restart_is_stored_once(root: Path) -> None:
    open_tables(root).append_batch(QUARANTINE, rows_at([1]), 7)
    again = open_tables(root)
    assert not again.append_batch(QUARANTINE, rows_at([1]), 7)
    assert not again.append_batch(QUARANTINE, rows_at([0]), 6), "an older batch is also stored"
    assert again.append_batch(QUARANTINE, rows_at([2]), 8)
    assert stored_offsets(root) == [1, 2]


def test_a_new_checkpoint_counts_its_batches_from_zero(root: Path) -> None:
    """If both checkpoints had one transaction name, Delta would silently skip every batch of the new one."""
    open_tables(root, "old").append_batch(QUARANTINE, rows_at([1]), 500)
    new = open_tables(root, "new")
    assert new.append_batch(QUARANTINE, rows_at([2]), 0)
    assert not open_tables(root, "new").append_batch(QUARANTINE, rows_at([2]), 0)
    assert stored_offsets(root) == [1, 2]


def test_a_kill_between_two_tables_loses_and_repeats_no_row(root: Path) -> None:
    """The batch runs again. Only the table that lacks the batch is written."""
    generations = GROUP_GENERATIONS.schema.empty_table()
    assert open_tables(root).append_batches({QUARANTINE: rows_at([1])}, 3) == []
    repeated = open_tables(root).append_batches({QUARANTINE: rows_at([1]), GROUP_GENERATIONS: generations}, 3)
    assert repeated == [QUARANTINE]
    assert stored_offsets(root) == [1]


def test_an_append_whose_response_was_lost_is_not_repeated(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit succeeded and then raised an error. The retry must read the table again, not its cached handle."""
    tables, original_commit = open_tables(root), delta_module._commit

    def commit_and_fail(*arguments: object) -> None:
        original_commit(*arguments)  # type: ignore[arg-type]
        raise OSError("connection reset")

    stale = DeltaTable(str(root / QUARANTINE.name))
    monkeypatch.setattr(delta_module, "_commit", commit_and_fail)
    with pytest.raises(OSError, match="connection reset"):
        tables.append_batch(QUARANTINE, rows_at([1]), 0)
    monkeypatch.setattr(delta_module, "_commit", original_commit)
    tables._open[QUARANTINE.name].handle = stale
    assert not tables.append_batch(QUARANTINE, rows_at([1]), 0)
    assert stored_offsets(root) == [1]


def test_each_failed_append_is_reported_to_the_checkpoint_that_wrote(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk stops all tables while `/metrics` continues. Without a count, no alert would fire."""
    shared = open_tables(root)
    failures: dict[str, int] = {"one": 0, "two": 0}
    writers = {name: shared.for_checkpoint(name) for name in failures}
    for name, tables in writers.items():
        tables.on_write_failure = lambda name=name: failures.update({name: failures[name] + 1})
    original_commit = delta_module._commit

    def refuse(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(delta_module, "_commit", refuse)
    for append in (
        lambda: writers["one"].append(QUARANTINE, rows_at([1])),
        lambda: writers["one"].append_batches({QUARANTINE: rows_at([1])}, 0),
        lambda: writers["two"].append(QUARANTINE, rows_at([1])),
    ):
        with pytest.raises(OSError, match="no space"):
            append()
    monkeypatch.setattr(delta_module, "_commit", original_commit)
    writers["one"].append(QUARANTINE, rows_at([1]))
    assert failures == {"one": 2, "two": 1}, "the successful append does not count"


class PanicException(BaseException):
    """A panic of delta-rs. It is not an `Exception`."""


def test_a_panic_of_delta_rs_is_an_error_and_a_counted_write_failure(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A panic ended the thread in which Spark calls Python, so the monitor waited for ever, without a log line."""
    tables, failures = open_tables(root), list[str]()
    tables.on_write_failure = lambda: failures.append("append")

    def panic(*_: object, **__: object) -> None:
        raise PanicException("Invalid object store url")

    with monkeypatch.context() as patch:
        patch.setattr(delta_module, "write_deltalake", panic)
        with pytest.raises(DeltaError, match="Invalid object store url"):
            tables.append(QUARANTINE, rows_at([1]))
        with pytest.raises(DeltaError, match="Invalid object store url"):
            tables.append_batch(QUARANTINE, rows_at([1]), 0)
    assert failures == ["append", "append"]
    monkeypatch.setattr(DeltaTable, "vacuum", panic)
    monkeypatch.setattr(DeltaTable, "transaction_version", panic)
    assert len(tables.tidy(LONG_AGO)) == len(TABLES)
    with pytest.raises(DeltaError, match="Invalid object store url"):
        tables.progress()
    monkeypatch.setattr(DeltaTable, "create", panic)
    with pytest.raises(UnusableTableError, match=r"cannot be opened \(Invalid object store url\)"):
        open_tables(root)


def test_two_monitors_that_start_at_the_same_time_set_the_same_properties(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a change of `versions_kept_hours`, one of two monitors ended and asked for a repair of its tables."""
    open_tables(root)
    original = delta_module._set_properties

    def set_after_the_other_monitor(delta_table: DeltaTable, properties: dict[str, str]) -> None:
        monkeypatch.setattr(delta_module, "_set_properties", original)
        DeltaTables(str(root), versions_kept_hours=5).open_all()
        original(delta_table, properties)

    monkeypatch.setattr(delta_module, "_set_properties", set_after_the_other_monitor)
    DeltaTables(str(root), versions_kept_hours=5).open_all()


def test_an_append_that_lost_its_last_line_is_damage(root: Path) -> None:
    """The last line identifies the batch. Without it, a repeated batch would be stored twice."""
    open_tables(root).append_batch(QUARANTINE, rows_at([1]), 0)
    entry = root / QUARANTINE.name / log_entry(1)
    assert find_table_damage(LocalFolder(root / QUARANTINE.name)) is None
    entry.write_text(entry.read_text().rpartition("\n")[0])
    assert str(find_table_damage(LocalFolder(root / QUARANTINE.name))) == f"{log_entry(1)} is cut off"


def test_a_monitor_that_lost_the_right_to_write_appends_nothing(root: Path) -> None:
    """A monitor that paused appended rows that a second monitor had already written (`run/writers.py`, rule 6)."""
    tables = open_tables(root).for_checkpoint("two")

    def refuse() -> None:
        raise SecondWriterError("removed")

    tables.before_append = refuse
    with pytest.raises(SecondWriterError):
        tables.append(QUARANTINE, rows_at([1]))
    with pytest.raises(SecondWriterError):
        tables.append_batches({QUARANTINE: rows_at([1])}, 0)
    assert stored_offsets(root) == []


def test_an_append_without_rows_commits_nothing(root: Path) -> None:
    tables = open_tables(root)
    tables.append_batches({QUARANTINE: rows_at([]), GROUP_GENERATIONS: GROUP_GENERATIONS.schema.empty_table()}, 0)
    tables.append(QUARANTINE, rows_at([]))
    assert DeltaTable(str(root / QUARANTINE.name)).version() == 0
    assert tables.is_empty(QUARANTINE)
    tables.append(QUARANTINE, rows_at([1]))
    assert not tables.is_empty(QUARANTINE)


def test_maintenance_keeps_all_rows_within_retention_and_all_batch_identifiers(root: Path) -> None:
    tables = open_tables(root)
    for batch_id in range(12):
        tables.append_batch(QUARANTINE, rows_at([batch_id]), batch_id)
    files_before = len(DeltaTable(str(root / QUARANTINE.name)).file_uris())
    tables.tidy(LONG_AGO)
    assert stored_offsets(root) == list(range(12))
    assert len(DeltaTable(str(root / QUARANTINE.name)).file_uris()) == 1 < files_before
    assert not open_tables(root).append_batch(QUARANTINE, rows_at([11]), 11)
    assert tables.append_batch(QUARANTINE, rows_at([12]), 12)
    assert stored_offsets(root) == list(range(13))


def test_maintenance_deletes_whole_days_that_are_older_than_retention(root: Path) -> None:
    tables = open_tables(root)
    tables.append(QUARANTINE, rows_at([1], day=19_999))
    tables.append(QUARANTINE, rows_at([2], day=20_000))
    tables.tidy(date(2024, 10, 4))
    assert stored_offsets(root) == [2], "day 20,000 is 2024-10-04, which is within retention"


def test_maintenance_removes_replaced_files_only_after_readers_are_finished(root: Path) -> None:
    tables = open_tables(root)
    for batch_id in range(3):
        tables.append_batch(QUARANTINE, rows_at([batch_id]), batch_id)
    tables.tidy(LONG_AGO)
    assert len(list((root / QUARANTINE.name).rglob("part-*.parquet"))) > 1, (
        "a reader that just opened the table still finds its files"
    )
    tables._versions_kept_hours = 0
    tables.tidy(LONG_AGO)
    assert len(list((root / QUARANTINE.name).rglob("part-*.parquet"))) == 1


def test_concurrent_appends_and_maintenance_lose_nothing(root: Path) -> None:
    """The query's thread appends batches. The sampler's thread appends samples and does the maintenance."""
    tables, failures = open_tables(root), list[BaseException]()
    tables._versions_kept_hours = 24

    def append() -> None:
        try:
            for batch_id in range(25):
                tables.append_batch(QUARANTINE, rows_at([batch_id]), batch_id)
        except BaseException as failure:  # noqa: BLE001 - the test must see every error
            failures.append(failure)

    def tidy() -> None:
        try:
            for number in range(8):
                failures.extend(tables.tidy(LONG_AGO).values())
                tables.append(QUARANTINE, rows_at([1_000 + number]))
        except BaseException as failure:  # noqa: BLE001 - as above
            failures.append(failure)

    threads = [threading.Thread(target=work) for work in (append, tidy)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert stored_offsets(root) == [*range(25), *range(1_000, 1_008)]


@pytest.mark.parametrize(("version", "found"), [("1", "1"), ("0", "0"), (None, "none")])
def test_tables_with_a_different_schema_version_are_refused_by_name(
    tmp_path: Path, version: str | None, found: str
) -> None:
    configuration = {} if version is None else {"rebalance_monitor.schema_version": version}
    for table in TABLES:
        path = str(tmp_path / table.name)
        DeltaTable.create(path, table.schema, configuration=configuration, raise_if_key_not_exists=False)
    with pytest.raises(TableVersionError, match=rf"{tmp_path}/\w+ has schema version {found}, .*set paths\.tables to"):
        open_tables(tmp_path)


def test_a_table_without_a_new_column_gets_it_and_keeps_its_rows(root: Path) -> None:
    """The column is newer than the table. Old rows have null in it. The next start changes nothing."""
    new = "protocol_source"
    before = pa.schema([field for field in GROUP_GENERATIONS.schema if field.name != new])
    path = str(root / GROUP_GENERATIONS.name)
    DeltaTable.create(
        path,
        before,
        partition_by=list(PARTITIONED_BY),
        configuration={"rebalance_monitor.schema_version": str(SCHEMA_VERSION)},
        raise_if_key_not_exists=False,
    )
    rows = update_rows("c", [apply_batch(GroupState(GroupSnapshot("g")), [written(0, 1)], [])], {})[GROUP_GENERATIONS]
    plain = pa.schema([field.remove_metadata() for field in before])
    write_deltalake(path, arrow_table(GROUP_GENERATIONS, rows).select(before.names).cast(plain), mode="append")
    tables = open_tables(root)
    assert tables.append_batch(GROUP_GENERATIONS, arrow_table(GROUP_GENERATIONS, rows), 0)
    rows_in_table = stored_rows(str(root), GROUP_GENERATIONS)
    assert sorted(row[new] or "" for row in rows_in_table) == ["", "records"]
    assert {row["protocol"] for row in rows_in_table} == {"range"}, "columns are matched by name"
    version = DeltaTable(path).version()
    open_tables(root)
    assert DeltaTable(path).version() == version
    (added,) = [field for field in DeltaTable(path).schema().fields if field.name == new]
    assert added.metadata["comment"].startswith("source of the value")


def test_a_table_with_columns_of_a_later_version_can_be_appended_to_and_keeps_them(root: Path) -> None:
    """An operator goes back to this version of the monitor. Rows of this version have null in the new columns."""
    open_tables(root)
    path = str(root / GROUP_GENERATIONS.name)
    later = [Field("later", PrimitiveType("string"), metadata={"comment": "of a later version"})]
    DeltaTable(path).alter.add_columns(later)
    before = DeltaTable(path)
    tables = open_tables(root)
    rows = update_rows("c", [apply_batch(GroupState(GroupSnapshot("g")), [written(0, 1)], [])], {})[GROUP_GENERATIONS]
    assert tables.append_batch(GROUP_GENERATIONS, arrow_table(GROUP_GENERATIONS, rows), 0)
    after = DeltaTable(path)
    assert [row["later"] for row in after.to_pyarrow_table().to_pylist()] == [None]
    assert after.schema().to_json() == before.schema().to_json(), "columns keep their order and their descriptions"
    assert "metaData" not in Path(path, log_entry(after.version())).read_text(), "an append does not change the schema"


def test_a_new_table_contains_the_descriptions_of_its_columns(root: Path) -> None:
    """A user without this project can read the meaning of rows and columns in the table itself."""
    tables = open_tables(root)
    for table in TABLES:
        delta_table = DeltaTable(tables.path(table))
        assert delta_table.metadata().description == table.row
        assert delta_table.metadata().partition_columns == list(PARTITIONED_BY)
        comments = {field.name: field.metadata["comment"] for field in delta_table.schema().fields}
        assert comments == {field.name: field.metadata[b"comment"].decode() for field in table.schema}


def test_clusters_and_days_are_partitions_for_any_cluster_name(root: Path) -> None:
    records = [DecodeFailure(0, 1, 20_000 * DAY_MS, b"k", None, "truncated", None)]
    tables = open_tables(root)
    for cluster in ("prod/eu=1", "\N{ROCKET}", " "):
        tables.append(QUARANTINE, arrow_table(QUARANTINE, quarantine_rows(cluster, records)[QUARANTINE]))
    found = DeltaTable(str(root / QUARANTINE.name)).to_pyarrow_table(columns=["cluster"])["cluster"].to_pylist()
    assert sorted(found) == [" ", "prod/eu=1", "\N{ROCKET}"]


def test_batches_of_two_clusters_with_the_same_number_are_each_stored_once(root: Path) -> None:
    """Each checkpoint counts its own batches. Batch 0 of one cluster does not repeat batch 0 of the other."""
    tables = open_tables(root)
    one, other = tables.for_checkpoint("one"), tables.for_checkpoint("other")
    assert one.append_batch(QUARANTINE, rows_at([1]), 0)
    assert other.append_batch(QUARANTINE, rows_at([2]), 0)
    assert not one.append_batch(QUARANTINE, rows_at([1]), 0)
    assert stored_offsets(root) == [1, 2]
    assert not open_tables(root, "other").append_batch(QUARANTINE, rows_at([2]), 0), "the same is true after a restart"


def test_clusters_that_write_during_maintenance_lose_nothing(root: Path) -> None:
    tables = open_tables(root)
    writers = [tables.for_checkpoint(name) for name in ("one", "other", "third")]

    def write(place: int) -> None:
        for batch_id in range(12):
            assert writers[place].append_batch(QUARANTINE, rows_at([100 * place + batch_id]), batch_id)

    threads = [threading.Thread(target=write, args=(place,)) for place in range(len(writers))]
    for thread in threads:
        thread.start()
    tables.tidy(LONG_AGO)
    for thread in threads:
        thread.join()
    assert stored_offsets(root) == [100 * place + batch_id for place in range(3) for batch_id in range(12)]
