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
import logging
import threading
import time
from collections.abc import Iterable, Mapping
from datetime import date

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from streaming.delta.stored import rust_uri
from streaming.delta.table_files import TableDamagedError, table_refusal
from streaming.delta.table_upkeep import COMMITS_PER_CHECKPOINT, kept_properties, set_properties, upkeep_steps
from streaming.delta.tables import PARTITIONED_BY, SCHEMA_VERSION, TABLES, Table
from streaming.errors import STAYS, RemedyError
from streaming.spark.causes import plain_cause

VERSIONS_KEPT_HOURS = 2

_VERSION_PROPERTY = "rebalance_monitor.schema_version"
_log = logging.getLogger(__name__)
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


class TableVersionError(RemedyError):
    """A table was written by a version of the monitor with another schema."""

    exit_code = STAYS


class DeltaTables:
    """All tables below one root. `checkpoint_id` names the writer for Delta's transaction identifiers.

    Several checkpoints' batches go into the same tables, each through its own `written_by`: they take turns.
    """

    def __init__(self, root: str, checkpoint_id: str = "", versions_kept_hours: int = VERSIONS_KEPT_HOURS) -> None:
        self._root = root.rstrip("/")
        self._checkpoint_id = checkpoint_id
        self._versions_kept_hours = versions_kept_hours
        self._open: dict[str, _OpenTable] = {}

    def open_all(self) -> None:
        """Create what is missing and check what is there. Raises TableVersionError for a table of another version."""
        for table in TABLES:
            if table.name not in self._open:
                try:
                    self._open[table.name] = _OpenTable(self._opened(table))
                except (DeltaError, OSError) as error:
                    raise TableDamagedError(
                        f"table {self.path(table)} cannot be opened ({plain_cause(error)}): check its disk, or run"
                        " `rebalance-monitor rebuild --repair-tables`, which keeps what it replaces"
                    ) from error

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
        return not self._open[table.name].handle.file_uris()

    def last_batch(self) -> int:
        """The last batch of this checkpoint that any table has; -1 before the first."""
        versions = (self._open[table.name].handle.transaction_version(self._application_id(table)) for table in TABLES)
        return max((version for version in versions if version is not None), default=-1)

    def _application_id(self, table: Table) -> str:
        return f"{table.name}/{self._checkpoint_id}"

    def append_batch(self, table: Table, rows: pa.Table, batch_id: int) -> bool:
        """Append a batch's rows once. False where this batch had been appended before."""
        return self._open[table.name].append(rows, Transaction(self._application_id(table), batch_id))

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
            self._open[table.name].append(rows)

    def tidy(self, keep_from: date, replaced_files_kept_hours: int | None = None) -> None:
        """Delete rows dated before `keep_from`, make few files of many, and remove what no version kept needs.

        Batches append every few seconds, a small file and a log entry each: unattended, a table would grow by tens of
        thousands of files a day.
        """
        hours = self._versions_kept_hours if replaced_files_kept_hours is None else replaced_files_kept_hours
        for table in TABLES:
            self._open[table.name].tidy(keep_from, hours)

    def _opened(self, table: Table) -> DeltaTable:
        delta_table = self._created(table)
        _check_version(delta_table, self.path(table))
        _add_missing_columns(delta_table, table)
        set_properties(delta_table, self._versions_kept_hours)
        return delta_table

    def _created(self, table: Table) -> DeltaTable:
        """The table, which is left alone if it is there."""
        return DeltaTable.create(
            rust_uri(self.path(table)),
            table.schema,
            mode="ignore",
            partition_by=list(PARTITIONED_BY),
            description=table.row,
            configuration={_VERSION_PROPERTY: str(SCHEMA_VERSION), **kept_properties(self._versions_kept_hours)},
            raise_if_key_not_exists=False,
        )


class _OpenTable:
    """One table's handle, used by one thread at a time. Clusters, samplers and upkeep take turns."""

    def __init__(self, handle: DeltaTable) -> None:
        self.handle = handle
        self._lock = threading.Lock()
        self._checkpoint_version = 0
        self._is_in_doubt = False

    def append(self, rows: pa.Table, transaction: Transaction | None = None) -> bool:
        """Append rows once. False where the table has the transaction, or a later one of the same application."""
        with self._lock:
            if self._is_in_doubt:
                self._refresh()
            try:
                return self._append(rows, transaction)
            except CommitFailedError:  # somebody else changed what the table is: its properties, for instance
                self._refresh()
                return self._append(rows, transaction)

    def tidy(self, keep_from: date, replaced_files_kept_hours: int) -> None:
        """Take all steps of upkeep. Appends may come in between."""
        for step in upkeep_steps(keep_from, replaced_files_kept_hours):
            with self._lock:
                self._refresh()
                step(self.handle)
        with self._lock:
            if self.handle.version() > self._checkpoint_version:
                self._make_checkpoint()
            self.handle.cleanup_metadata()  # what is before a checkpoint, and old enough

    def _append(self, rows: pa.Table, transaction: Transaction | None) -> bool:
        if transaction is not None:
            last = self.handle.transaction_version(transaction.app_id)
            if last is not None and last >= transaction.version:
                return False
        started_seconds = time.monotonic()
        if refusal := table_refusal(self.handle.table_uri):  # delta-rs panics on a full disk, in Rust and at length
            raise refusal
        self._is_in_doubt = True
        _commit(self.handle, rows, [] if transaction is None else [transaction])
        self._is_in_doubt = False
        if self.handle.version() - self._checkpoint_version >= COMMITS_PER_CHECKPOINT:
            self._make_checkpoint()
        milliseconds = 1000 * (time.monotonic() - started_seconds)
        _log.debug("%d rows appended to %s in %.1f ms", rows.num_rows, self.handle.table_uri, milliseconds)
        return True

    def _make_checkpoint(self) -> None:
        """The rows are in the table already, so a failure costs nothing but a longer tail of the log."""
        try:
            self.handle.create_checkpoint()
            self._open_anew()
        except (DeltaError, OSError) as error:
            _log.warning("no checkpoint of %s: %s", self.handle.table_uri, error)

    def _refresh(self) -> None:
        """See the table as it is on disk: an append may have been committed although it raised."""
        self.handle.update_incremental()
        self._is_in_doubt = False

    def _open_anew(self) -> None:
        """Read the table from its last checkpoint (rule 3 of `table_upkeep`)."""
        self.handle = DeltaTable(self.handle.table_uri)
        self._checkpoint_version = self.handle.version()


def _commit(delta_table: DeltaTable, rows: pa.Table, transactions: Iterable[Transaction]) -> None:
    properties = CommitProperties(app_transactions=list(transactions))
    write_deltalake(
        delta_table,
        _without_comments(rows),
        mode="append",
        commit_properties=properties,
        post_commithook_properties=_NO_HOOKS,
    )


def _add_missing_columns(delta_table: DeltaTable, table: Table) -> None:
    """Add the columns that this version of the monitor brought. They come last, and earlier rows have null in them.

    An earlier version of the monitor cannot append afterwards: Delta refuses rows that lack a column.
    """
    try:
        _add_columns(delta_table, table)
    except CommitFailedError:  # a different monitor opens the same tables and adds them
        delta_table.update_incremental()
        _add_columns(delta_table, table)


def _add_columns(delta_table: DeltaTable, table: Table) -> None:
    known = {field.name for field in delta_table.schema().fields}
    if missing := [field for field in Schema.from_arrow(table.schema).fields if field.name not in known]:
        delta_table.alter.add_columns(missing, post_commithook_properties=_NO_HOOKS)
        _log.info("%s has new columns: %s", delta_table.table_uri, ", ".join(field.name for field in missing))


def _without_comments(rows: pa.Table) -> pa.Table:
    """A table keeps the comments it was made with: Delta refuses rows whose columns are described in other words."""
    return rows.cast(pa.schema([field.remove_metadata() for field in rows.schema]))


def _check_version(delta_table: DeltaTable, path: str) -> None:
    found = delta_table.metadata().configuration.get(_VERSION_PROPERTY)
    if found != str(SCHEMA_VERSION):
        raise TableVersionError(
            f"{path} has schema version {found or 'none'}, this monitor writes {SCHEMA_VERSION}: "
            "choose another paths.tables, or the version of the monitor that wrote it"
        )
