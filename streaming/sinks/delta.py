"""The Delta tables on disk.

Two libraries, each for what it does best. delta-spark reads history in bulk when a checkpoint is made, and is what
users query with. delta-rs (`deltalake`) is the only one that commits: a small append takes it 6-8 ms, where a Spark job
takes 0.7 s, seven tables are made in 0.1 s instead of 5-9 s (measured; see streaming/DESIGN.md), and it never leaves a
half-written commit either.

"Once" is Delta's own transaction identifier: a batch's append carries (application id, batch id), and an append whose
batch id is not above the last one committed is left out. The application id names the table and the checkpoint, for a
new checkpoint counts its batches from 0 again.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable, Mapping
from datetime import date

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from streaming.errors import STAYS, RemedyError
from streaming.sinks.stored import rust_uri
from streaming.sinks.tables import PARTITIONED_BY, SCHEMA_VERSION, TABLES, Table

_VERSION_PROPERTY = "rebalance_monitor.schema_version"


class TableVersionError(RemedyError):
    """A table was written by a version of the monitor with another schema."""

    exit_code = STAYS


class DeltaTables:
    """All tables below one root. `checkpoint_id` names the writer for Delta's transaction identifiers.

    Several checkpoints' batches go into the same tables, each through its own `written_by`: they take turns.
    """

    def __init__(self, root: str, checkpoint_id: str = "") -> None:
        self._root = root.rstrip("/")
        self._checkpoint_id = checkpoint_id
        self._open: dict[str, DeltaTable] = {}
        self._locks = {table.name: threading.Lock() for table in TABLES}

    def open_all(self) -> None:
        """Create what is missing and check what is there. Raises TableVersionError for a table of another version."""
        for table in TABLES:
            if table.name not in self._open:
                delta_table = self._created(table)
                _check_version(delta_table, self.path(table))
                self._open[table.name] = delta_table

    def written_by(self, checkpoint_id: str) -> DeltaTables:
        """The same tables, opened and locked as one, for the batches of another checkpoint."""
        another = copy.copy(self)
        another._checkpoint_id = checkpoint_id  # noqa: SLF001 - one of us
        return another

    @property
    def root(self) -> str:
        """The folder of all tables."""
        return self._root

    def path(self, table: Table) -> str:
        """Where a table lies."""
        return f"{self._root}/{table.name}"

    def is_empty(self, table: Table) -> bool:
        """Whether the table has no file at all."""
        return not self._open[table.name].file_uris()

    def append_batch(self, table: Table, rows: pa.Table, batch_id: int) -> bool:
        """Append a batch's rows once. False where this batch had been appended before."""
        application_id = f"{table.name}/{self._checkpoint_id}"
        with self._locks[table.name]:
            delta_table = self._refreshed(table)
            last = delta_table.transaction_version(application_id)
            if last is not None and last >= batch_id:
                return False
            _commit(delta_table, rows, [Transaction(application_id, batch_id)])
            return True

    def append_batches(self, rows_by_table: Mapping[Table, pa.Table], batch_id: int) -> list[Table]:
        """Append what a batch has for each table; tells which had it before. A table without rows is left alone."""
        return [
            table
            for table, rows in rows_by_table.items()
            if rows.num_rows and not self.append_batch(table, rows, batch_id)
        ]

    def append(self, table: Table, rows: pa.Table) -> None:
        """Append rows that no batch repeats: a sample has its own time, and is taken once."""
        if rows.num_rows:
            with self._locks[table.name]:
                _commit(self._refreshed(table), rows, [])

    def tidy(self, keep_from: date, file_retention_hours: int = 24) -> None:
        """Delete rows dated before `keep_from`, make few files of many, and remove files nobody has read for a day.

        Batches append every few seconds, a small file each: unattended, a table would grow by tens of thousands of
        files a day.
        """
        for table in TABLES:
            with self._locks[table.name]:
                delta_table = self._refreshed(table)
                delta_table.delete(f"date < '{keep_from.isoformat()}'")
                delta_table.optimize.compact()
                delta_table.vacuum(file_retention_hours, dry_run=False, enforce_retention_duration=False)
                delta_table.cleanup_metadata()

    def _refreshed(self, table: Table) -> DeltaTable:
        """The table as it is on disk: an append may have been committed although it raised and its answer got lost."""
        delta_table = self._open[table.name]
        delta_table.update_incremental()
        return delta_table

    def _created(self, table: Table) -> DeltaTable:
        """The table, which is left alone if it is there."""
        return DeltaTable.create(
            rust_uri(self.path(table)),
            table.schema,
            mode="ignore",
            partition_by=list(PARTITIONED_BY),
            description=table.row,
            configuration={_VERSION_PROPERTY: str(SCHEMA_VERSION)},
            raise_if_key_not_exists=False,
        )


def _commit(delta_table: DeltaTable, rows: pa.Table, transactions: Iterable[Transaction]) -> None:
    properties = CommitProperties(app_transactions=list(transactions))
    write_deltalake(delta_table, rows, mode="append", commit_properties=properties)


def _check_version(delta_table: DeltaTable, path: str) -> None:
    found = delta_table.metadata().configuration.get(_VERSION_PROPERTY)
    if found != str(SCHEMA_VERSION):
        raise TableVersionError(
            f"{path} has schema version {found or 'none'}, this monitor writes {SCHEMA_VERSION}: "
            "choose another paths.tables, or the version of the monitor that wrote it"
        )
