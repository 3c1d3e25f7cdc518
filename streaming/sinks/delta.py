"""The Delta tables on disk.

Two libraries, each for what it does best, never at once. delta-spark creates the tables and reads history in bulk when
a checkpoint is made. From then on delta-rs (`deltalake`) is the only one that commits: a small append takes it 6-8 ms,
where a Spark job takes 0.7 s (measured; see streaming/DESIGN.md), and it never leaves a half-written commit either.

"Once" is Delta's own transaction identifier: a batch's append carries (application id, batch id), and an append whose
batch id is not above the last one committed is left out. The application id names the table and the checkpoint, for a
new checkpoint counts its batches from 0 again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pyarrow as pa
from delta.tables import DeltaTable as SparkDeltaTable
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from streaming.errors import RemedyError
from streaming.sinks.stored import rust_uri
from streaming.sinks.tables import PARTITIONED_BY, SCHEMA_VERSION, TABLES, Table

_VERSION_PROPERTY = "rebalance_monitor.schema_version"

_log = logging.getLogger(__name__)


class TableVersionError(RemedyError):
    """A table was written by a version of the monitor with another schema."""


class DeltaTables:
    """All tables below one root. `checkpoint_id` names the writer for Delta's transaction identifiers."""

    def __init__(self, root: str, checkpoint_id: str) -> None:
        self._root = root.rstrip("/")
        self._checkpoint_id = checkpoint_id
        self._open: dict[str, DeltaTable] = {}
        self._locks = {table.name: threading.Lock() for table in TABLES}

    def open_all(self, session: SparkSession) -> None:
        """Create what is missing and check what is there. Raises TableVersionError for a table of another version."""
        with ThreadPoolExecutor(len(TABLES)) as pool:
            list(pool.map(lambda table: self._create(session, table), TABLES))
        for table in TABLES:
            self._open[table.name] = delta_table = DeltaTable(rust_uri(self.path(table)))
            _check_version(delta_table, self.path(table))

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

    def append_batches(self, rows_by_table: Mapping[Table, pa.Table], batch_id: int) -> None:
        """Append what a batch has for each table; a table without rows is left alone."""
        for table, rows in rows_by_table.items():
            if rows.num_rows and not self.append_batch(table, rows, batch_id):
                _log.info("batch %d is in %s already", batch_id, table.name)

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

    def _create(self, session: SparkSession, table: Table) -> None:
        if DeltaTable.is_deltatable(rust_uri(self.path(table))):
            return
        builder = SparkDeltaTable.createIfNotExists(session).location(self.path(table)).comment(table.row)
        for field, spark_field in zip(table.schema, from_arrow_schema(table.schema), strict=True):
            comment = field.metadata[b"comment"].decode()
            builder = builder.addColumn(field.name, spark_field.dataType, comment=comment)
        builder.partitionedBy(*PARTITIONED_BY).property(_VERSION_PROPERTY, str(SCHEMA_VERSION)).execute()


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
