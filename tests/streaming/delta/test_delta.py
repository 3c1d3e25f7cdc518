"""The Delta tables, by the real library on a real folder: once is once, whatever is repeated, restarted or tidied."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from streaming.combine.partition_state import DecodeFailure
from streaming.delta import on_disk as delta_module
from streaming.delta.on_disk import DeltaTables, TableVersionError
from streaming.delta.rows import arrow_table, quarantine_rows, update_rows
from streaming.delta.stored import stored_rows
from streaming.delta.tables import GROUP_GENERATIONS, PARTITIONED_BY, QUARANTINE, SCHEMA_VERSION, TABLES
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.group.snapshot import GroupSnapshot
from tests.streaming.groups import written

DAY_MS = 86_400_000
LONG_AGO = date(2000, 1, 1)


def opened(root: Path, checkpoint_id: str = "one") -> DeltaTables:
    """Open the tables for a checkpoint."""
    tables = DeltaTables(str(root), checkpoint_id)
    tables.open_all()
    return tables


def rows_at(offsets: Iterable[int], day: int = 20_000) -> pa.Table:
    """Return quarantine rows of records at these offsets, written on a day since 1970."""
    records = [DecodeFailure(0, at, day * DAY_MS, b"k", None, "truncated", None) for at in offsets]
    return arrow_table(QUARANTINE, quarantine_rows("c", records)[QUARANTINE])


def stored(root: Path) -> list[int]:
    """Return the offsets in the quarantine table as a reader finds them, sorted, repeats kept."""
    table = DeltaTable(str(root / QUARANTINE.name)).to_pyarrow_table(columns=["offsets_topic_offset"])
    return sorted(table["offsets_topic_offset"].to_pylist())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def test_a_batch_appended_twice_is_there_once(root: Path) -> None:
    tables = opened(root)
    assert tables.append_batch(QUARANTINE, rows_at([1, 2]), 0)
    assert not tables.append_batch(QUARANTINE, rows_at([1, 2]), 0)
    assert stored(root) == [1, 2]


def test_a_table_whose_columns_were_described_in_other_words_is_appended_to(root: Path) -> None:
    """A description that was made plainer stopped every append to the tables there were: "Cannot merge metadata"."""
    opened(root).append(QUARANTINE, rows_at([1]))
    described = rows_at([2])
    fields = [field.with_metadata({"comment": "other words"}) for field in described.schema]
    again = opened(root)
    again.append(QUARANTINE, described.cast(pa.schema(fields)))
    assert stored(root) == [1, 2]
    field = next(field for field in DeltaTable(str(root / QUARANTINE.name)).schema().fields if field.name == "reason")
    assert field.metadata["comment"] not in {"", "other words"}, "it keeps the words it was made with"


def test_a_batch_replayed_after_a_restart_is_there_once(root: Path) -> None:
    opened(root).append_batch(QUARANTINE, rows_at([1]), 7)
    again = opened(root)
    assert not again.append_batch(QUARANTINE, rows_at([1]), 7)
    assert not again.append_batch(QUARANTINE, rows_at([0]), 6), "an older batch is in, too"
    assert again.append_batch(QUARANTINE, rows_at([2]), 8)
    assert stored(root) == [1, 2]


def test_another_checkpoint_counts_its_own_batches_from_zero(root: Path) -> None:
    """With one transaction name for both, Delta would silently skip every batch of the new checkpoint."""
    opened(root, "old").append_batch(QUARANTINE, rows_at([1]), 500)
    new = opened(root, "new")
    assert new.append_batch(QUARANTINE, rows_at([2]), 0)
    assert not opened(root, "new").append_batch(QUARANTINE, rows_at([2]), 0)
    assert stored(root) == [1, 2]


def test_a_kill_between_two_tables_loses_nothing_and_doubles_nothing(root: Path) -> None:
    """The batch runs again: the table that has it stays, the one that lacks it gets it."""
    generations = GROUP_GENERATIONS.schema.empty_table()
    assert opened(root).append_batches({QUARANTINE: rows_at([1])}, 3) == []
    repeated = opened(root).append_batches({QUARANTINE: rows_at([1]), GROUP_GENERATIONS: generations}, 3)
    assert repeated == [QUARANTINE]
    assert stored(root) == [1]


def test_an_append_whose_answer_got_lost_is_not_made_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Committed, and then an error: the retry must ask the table, not what it remembers of it."""
    tables, really_commit = opened(root), delta_module._commit

    def commit_and_fail(*arguments: object) -> None:
        really_commit(*arguments)  # type: ignore[arg-type]
        raise OSError("connection reset")

    stale = DeltaTable(str(root / QUARANTINE.name))
    monkeypatch.setattr(delta_module, "_commit", commit_and_fail)
    with pytest.raises(OSError, match="connection reset"):
        tables.append_batch(QUARANTINE, rows_at([1]), 0)
    monkeypatch.setattr(delta_module, "_commit", really_commit)
    tables._open[QUARANTINE.name].handle = stale
    assert not tables.append_batch(QUARANTINE, rows_at([1]), 0)
    assert stored(root) == [1]


def test_tables_without_rows_are_left_alone(root: Path) -> None:
    tables = opened(root)
    tables.append_batches({QUARANTINE: rows_at([]), GROUP_GENERATIONS: GROUP_GENERATIONS.schema.empty_table()}, 0)
    tables.append(QUARANTINE, rows_at([]))
    assert DeltaTable(str(root / QUARANTINE.name)).version() == 0
    assert tables.is_empty(QUARANTINE)
    tables.append(QUARANTINE, rows_at([1]))
    assert not tables.is_empty(QUARANTINE)


def test_tidying_keeps_every_row_within_retention_and_the_knowledge_of_batches(root: Path) -> None:
    tables = opened(root)
    for batch_id in range(12):
        tables.append_batch(QUARANTINE, rows_at([batch_id]), batch_id)
    files_before = len(DeltaTable(str(root / QUARANTINE.name)).file_uris())
    tables.tidy(LONG_AGO)
    assert stored(root) == list(range(12))
    assert len(DeltaTable(str(root / QUARANTINE.name)).file_uris()) == 1 < files_before
    assert not opened(root).append_batch(QUARANTINE, rows_at([11]), 11)
    assert tables.append_batch(QUARANTINE, rows_at([12]), 12)
    assert stored(root) == list(range(13))


def test_tidying_deletes_what_is_older_than_retention_by_whole_days(root: Path) -> None:
    tables = opened(root)
    tables.append(QUARANTINE, rows_at([1], day=19_999))
    tables.append(QUARANTINE, rows_at([2], day=20_000))
    tables.tidy(date(2024, 10, 4))
    assert stored(root) == [2], "day 20,000 is 2024-10-04, and it is kept"


def test_tidying_removes_replaced_files_only_when_nobody_can_be_reading_them(root: Path) -> None:
    tables = opened(root)
    for batch_id in range(3):
        tables.append_batch(QUARANTINE, rows_at([batch_id]), batch_id)
    tables.tidy(LONG_AGO)
    assert len(list((root / QUARANTINE.name).rglob("part-*.parquet"))) > 1, (
        "a reader of a moment ago still finds its files"
    )
    tables.tidy(LONG_AGO, replaced_files_kept_hours=0)
    assert len(list((root / QUARANTINE.name).rglob("part-*.parquet"))) == 1


def test_appending_and_tidying_at_once_lose_nothing(root: Path) -> None:
    """Two threads of ours, one table: batches by the query's, samples and tidying by the sampler's."""
    tables, failures = opened(root), list[BaseException]()

    def append() -> None:
        try:
            for batch_id in range(25):
                tables.append_batch(QUARANTINE, rows_at([batch_id]), batch_id)
        except BaseException as failure:  # noqa: BLE001 - whatever it is, the test must see it
            failures.append(failure)

    def tidy() -> None:
        try:
            for number in range(8):
                tables.tidy(LONG_AGO, replaced_files_kept_hours=24)
                tables.append(QUARANTINE, rows_at([1_000 + number]))
        except BaseException as failure:  # noqa: BLE001 - as above
            failures.append(failure)

    threads = [threading.Thread(target=work) for work in (append, tidy)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert stored(root) == [*range(25), *range(1_000, 1_008)]


@pytest.mark.parametrize(("version", "found"), [("1", "1"), ("0", "0"), (None, "none")])
def test_tables_of_another_schema_are_refused_by_name(tmp_path: Path, version: str | None, found: str) -> None:
    configuration = {} if version is None else {"rebalance_monitor.schema_version": version}
    for table in TABLES:
        path = str(tmp_path / table.name)
        DeltaTable.create(path, table.schema, configuration=configuration, raise_if_key_not_exists=False)
    with pytest.raises(TableVersionError, match=rf"{tmp_path}/\w+ has schema version {found}, .*set paths\.tables to"):
        opened(tmp_path)


def test_a_table_without_a_new_column_gets_it_and_keeps_its_rows(root: Path) -> None:
    """A column came after the table was made. Rows from before have null in it; the next start adds nothing."""
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
    tables = opened(root)
    assert tables.append_batch(GROUP_GENERATIONS, arrow_table(GROUP_GENERATIONS, rows), 0)
    found = stored_rows(str(root), GROUP_GENERATIONS)
    assert sorted(row[new] or "" for row in found) == ["", "records"]
    assert {row["protocol"] for row in found} == {"range"}, "columns are matched by name"
    version = DeltaTable(path).version()
    opened(root)
    assert DeltaTable(path).version() == version
    (added,) = [field for field in DeltaTable(path).schema().fields if field.name == new]
    assert added.metadata["comment"].startswith("records: ")


def test_a_new_table_carries_its_reference_with_it(root: Path) -> None:
    """Whoever finds the table without this project beside it can read what a row and a column are."""
    tables = opened(root)
    for table in TABLES:
        made = DeltaTable(tables.path(table))
        assert made.metadata().description == table.row
        assert made.metadata().partition_columns == list(PARTITIONED_BY)
        comments = {field.name: field.metadata["comment"] for field in made.schema().fields}
        assert comments == {field.name: field.metadata[b"comment"].decode() for field in table.schema}


def test_clusters_and_days_are_partitions_whatever_the_clusters_name(root: Path) -> None:
    records = [DecodeFailure(0, 1, 20_000 * DAY_MS, b"k", None, "truncated", None)]
    tables = opened(root)
    for cluster in ("prod/eu=1", "\N{ROCKET}", " "):
        tables.append(QUARANTINE, arrow_table(QUARANTINE, quarantine_rows(cluster, records)[QUARANTINE]))
    found = DeltaTable(str(root / QUARANTINE.name)).to_pyarrow_table(columns=["cluster"])["cluster"].to_pylist()
    assert sorted(found) == [" ", "prod/eu=1", "\N{ROCKET}"]


def test_two_clusters_batches_of_one_number_are_both_there_and_each_once(root: Path) -> None:
    """Each checkpoint counts its own batches: one cluster's batch 0 is no repetition of another's."""
    tables = opened(root)
    one, other = tables.for_checkpoint("one"), tables.for_checkpoint("other")
    assert one.append_batch(QUARANTINE, rows_at([1]), 0)
    assert other.append_batch(QUARANTINE, rows_at([2]), 0)
    assert not one.append_batch(QUARANTINE, rows_at([1]), 0)
    assert stored(root) == [1, 2]
    assert not opened(root, "other").append_batch(QUARANTINE, rows_at([2]), 0), "nor after a restart"


def test_clusters_that_write_at_the_same_time_lose_nothing_while_the_table_is_tidied(root: Path) -> None:
    tables = opened(root)
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
    assert stored(root) == [100 * place + batch_id for place in range(3) for batch_id in range(12)]
