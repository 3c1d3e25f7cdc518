"""Opens the Delta tables, appends rows to them and maintains them.

Only delta-rs (`deltalake`) writes to the tables: it appends a hundred times faster than Spark (streaming/DESIGN.md).
When the monitor creates a checkpoint of Spark, it reads the complete history with delta-spark. Users also query the
tables with delta-spark.

With Delta's transaction identifier, a repeated append of a batch has no effect. A table stores the last batch id of
each application id, and a batch is appended only if its id is greater. A new checkpoint of Spark numbers its batches
from 0 again. So the application id contains the id of the checkpoint and the name of the table.

A different process can shorten the log of a table while this process does not use the table. Then delta-rs cannot read
the log from the old handle, and the table is opened again. If the table on the disk has a different id or an older
version, it was replaced. Then the old handle stays, so that every later append fails too.
"""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date
from typing import NamedTuple

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from streaming.delta.log_entries import TRANSACTIONS
from streaming.delta.stored_table import panic_as_error, rust_uri
from streaming.delta.table_files import (
    UnusableTableError,
    refusing_unsupported_features,
    require_write_support,
    table_refusal,
)
from streaming.delta.tables import PARTITIONED_BY, SCHEMA_VERSION, TABLES, Table
from streaming.errors import REPAIR_REMEDY, STAYS, RemedyError
from streaming.spark.causes import plain_cause

VERSIONS_KEPT_HOURS = 2
"""Hours for which old versions (log entries and replaced files) are stored.

So a reader can continue to read an old version that it has opened. Older versions cannot be read (no time travel).
Delta's defaults are 30 days for the log and one week for replaced files. With a batch every 2 s, 30 days are 1.3
million log entries, and each append lists all entries.
"""

COMMITS_PER_CHECKPOINT = 25
"""Commits between two checkpoints of the log. After each checkpoint, the table is opened again from this checkpoint.

A handle stores a list of files for each commit, and each append reads all stored lists. After 2,000 commits, an append
needed 200 ms to read the lists. Writing a checkpoint takes 12 ms of processor time. Opening the table from the
checkpoint takes 5 ms. Divided by 25 commits, both times together are less than the time of one append.
"""

_VERSION_PROPERTY = "rebalance_monitor.schema_version"
_log = logging.getLogger(__name__)
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""Only the maintenance deletes old log entries. By default, delta-rs deletes them after each append.

With this default and 10,000 log entries, an append took 83 ms. The deletion took 55 ms of this time.
"""


class TableVersionError(RemedyError):
    """Error: a version of the monitor with a different schema wrote the table."""

    exit_code = STAYS


class TableProgress(NamedTuple):
    """The version of a table, and the id of the last batch that a checkpoint wrote to the table (-1: no batch)."""

    version: int
    last_batch: int


class DeltaTables:
    """All tables in one root folder. The id of a checkpoint identifies the writer in Delta's transaction identifiers.

    Batches of several checkpoints are appended to the same tables. For each checkpoint, `for_checkpoint` returns a
    separate object. A lock per table allows one append at a time. `before_append` is called before each append. If
    `before_append` raises an error, nothing is appended. `on_write_failure` is called for each append that fails.
    """

    def __init__(self, root: str, versions_kept_hours: int = VERSIONS_KEPT_HOURS) -> None:
        self.root = root.rstrip("/")
        self._checkpoint_id = ""
        self._versions_kept_hours = versions_kept_hours
        self._open: dict[str, _OpenTable] = {}
        self.before_append: Callable[[], None] = lambda: None
        self.on_write_failure: Callable[[], None] = lambda: None

    def open_all(self) -> None:
        """Create missing tables and check the existing tables.

        Raises TableVersionError for a table of a different version, and UnusableTableError for a table that delta-rs
        cannot open or cannot write.
        """
        for table in TABLES:
            if table.name not in self._open:
                try:
                    with refusing_unsupported_features(self.path(table)), panic_as_error():
                        self._open[table.name] = _OpenTable(self._open_table(table))
                except (DeltaError, OSError) as error:
                    raise UnusableTableError(
                        f"table {self.path(table)} cannot be opened ({plain_cause(error)}): check its storage, or"
                        f" {REPAIR_REMEDY}"
                    ) from error

    def for_checkpoint(self, checkpoint_id: str) -> DeltaTables:
        """Return the same tables, handles and locks for the batches of a different checkpoint."""
        tables = copy.copy(self)
        tables._checkpoint_id = checkpoint_id  # noqa: SLF001 - the same class
        return tables

    def path(self, table: Table) -> str:
        """Return the folder of a table."""
        return f"{self.root}/{table.name}"

    def is_empty(self, table: Table) -> bool:
        """Return True if the table has no data files."""
        return not self._open[table.name].handle.file_uris()

    def last_batch(self) -> int:
        """Return the highest batch id of this checkpoint in all tables, or -1 if no table has a batch."""
        return max(progress.last_batch for progress in self.progress().values())

    def progress(self) -> dict[str, TableProgress]:
        """Return a mapping from the name of each table to its progress. This takes 2 ms."""
        progress = {}
        for table in TABLES:
            progress[table.name] = self._open[table.name].progress(self._application_id(table))
        return progress

    def _application_id(self, table: Table) -> str:
        return f"{table.name}/{self._checkpoint_id}"

    def append_batch(self, table: Table, rows: pa.Table, batch_id: int) -> bool:
        """Append the rows of a batch to a table. Returns False if the table already contains this batch."""
        self.before_append()
        with self._reporting_failure():
            return self._open[table.name].append(rows, Transaction(self._application_id(table), batch_id))

    def append_batches(self, rows_by_table: Mapping[Table, pa.Table], batch_id: int) -> list[Table]:
        """Append the rows of a batch to each table. Returns the tables that already contained this batch."""
        return [
            table
            for table, rows in rows_by_table.items()
            if rows.num_rows and not self.append_batch(table, rows, batch_id)
        ]

    def append(self, table: Table, rows: pa.Table) -> None:
        """Append rows of a sample. The append has no batch id, because a sample is written only once."""
        if rows.num_rows:
            self.before_append()
            with self._reporting_failure():
                self._open[table.name].append(rows)

    @contextmanager
    def _reporting_failure(self) -> Iterator[None]:
        try:
            yield
        except Exception:
            self.on_write_failure()
            raise

    def tidy(self, keep_from: date) -> Mapping[str, Exception]:
        """Delete rows with a date before `keep_from`, compact small files, and remove files that no version needs.

        Every few seconds, a batch adds a small file and a log entry. Without maintenance, a table would grow by tens of
        thousands of files per day. If the maintenance of one table fails, the other tables are still maintained.
        Returns the first error of each failed table by its path.
        """
        hours = self._versions_kept_hours
        failures = ((self.path(table), self._open[table.name].tidy(keep_from, hours)) for table in TABLES)
        return {path: failure for path, failure in failures if failure is not None}

    def _open_table(self, table: Table) -> DeltaTable:
        path, kept = self.path(table), f"interval {self._versions_kept_hours} hours"
        # Other Delta readers and writers also use these properties. `delta.setTransactionRetentionDuration` is not set:
        # transaction identifiers must never expire, because they ensure that a batch is appended only once. So every
        # checkpoint of the log contains all transaction identifiers.
        properties = {
            "delta.logRetentionDuration": kept,
            "delta.deletedFileRetentionDuration": kept,
            "delta.checkpointInterval": str(COMMITS_PER_CHECKPOINT),
        }
        delta_table = DeltaTable.create(
            rust_uri(path),
            table.schema,
            mode="ignore",
            partition_by=list(PARTITIONED_BY),
            description=table.row,
            configuration={_VERSION_PROPERTY: str(SCHEMA_VERSION), **properties},
            raise_if_key_not_exists=False,
        )
        found = delta_table.metadata().configuration.get(_VERSION_PROPERTY)
        if found != str(SCHEMA_VERSION):
            raise TableVersionError(
                f"table {path} has schema version {found or 'none'}, but this monitor writes version {SCHEMA_VERSION}:"
                " set paths.tables to a different folder, or run the version of the monitor that wrote the table"
            )
        _try_twice(delta_table, lambda: _add_missing_columns(delta_table, table))
        _try_twice(delta_table, lambda: _set_properties(delta_table, properties))
        require_write_support(delta_table)
        return delta_table


class _OpenTable:
    """The handle of one table. A lock allows only one thread at a time to use the handle."""

    def __init__(self, handle: DeltaTable) -> None:
        self.handle = handle
        self._lock = threading.Lock()
        self._checkpoint_version = 0
        self._is_in_doubt = False

    def progress(self, application_id: str) -> TableProgress:
        """Return the version of the table and the last batch of this application id."""
        with self._lock, panic_as_error():
            last_batch = self._last_batch(application_id)
            return TableProgress(self.handle.version(), -1 if last_batch is None else last_batch)

    def append(self, rows: pa.Table, transaction: Transaction | None = None) -> bool:
        """Append rows once. Returns False if the table already contains this or a later transaction."""
        with self._lock, panic_as_error():
            if self._is_in_doubt:
                self._refresh()
            try:
                return self._append(rows, transaction)
            except CommitFailedError:  # a different process changed the table's metadata, for example its properties
                self._refresh()
                return self._append(rows, transaction)

    def tidy(self, keep_from: date, replaced_files_kept_hours: int) -> Exception | None:
        """Run all steps of maintenance, and return the first error. The table is valid after each step.

        If a step fails, the later steps still run. So the log and the number of files stay small. Other threads can
        append between two steps.
        """
        failure = None
        steps: tuple[Callable[[DeltaTable], object], ...] = (
            lambda table: table.delete(f"date < '{keep_from.isoformat()}'"),
            _merge_small_files,
            # If a writer is killed, files without a log entry can remain. A full vacuum also removes these files.
            lambda table: table.vacuum(
                replaced_files_kept_hours, dry_run=False, enforce_retention_duration=False, full=True
            ),
            self._shorten_log,
        )
        for step in steps:
            try:
                with self._lock, panic_as_error():
                    self._refresh()
                    step(self.handle)
            except (DeltaError, OSError) as error:  # noqa: PERF203 - a step takes milliseconds
                failure = failure or error
        return failure

    def _shorten_log(self, _: DeltaTable) -> None:
        if self.handle.version() > self._checkpoint_version:
            self._make_checkpoint()
        self.handle.cleanup_metadata()  # removes log entries that a checkpoint replaces and that are old enough

    def _append(self, rows: pa.Table, transaction: Transaction | None) -> bool:
        if transaction is not None:
            last_batch = self._last_batch(transaction.app_id)
            if last_batch is not None and last_batch >= transaction.version:
                return False
        started_seconds = time.monotonic()
        if refusal := table_refusal(self.handle.table_uri):  # without this check, delta-rs panics on a full disk
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
        """Write a checkpoint of the table's log. An error is only logged, because the rows are already committed."""
        try:
            with panic_as_error():
                self.handle.create_checkpoint()
                self.handle = DeltaTable(self.handle.table_uri)
            self._checkpoint_version = self.handle.version()
        except (DeltaError, OSError) as error:
            _log.warning("could not write a checkpoint of table %s: %s", self.handle.table_uri, error)

    def _last_batch(self, application_id: str) -> int | None:
        try:
            return self.handle.transaction_version(application_id)
        except DeltaError:  # a different process removed log entries that only the old handle needs
            self._refresh()
            return self.handle.transaction_version(application_id)

    def _refresh(self) -> None:
        """Open the table again. Its log shows whether a failed append was committed. Raises DeltaError."""
        self._is_in_doubt = True  # until the table is open again
        current, old = DeltaTable(self.handle.table_uri), self.handle
        if current.metadata().id != old.metadata().id or current.version() < old.version():
            raise DeltaError(f"table {old.table_uri} was replaced by a different table or by an older version")
        self.handle, self._is_in_doubt = current, False


def _commit(delta_table: DeltaTable, rows: pa.Table, transactions: list[Transaction]) -> None:
    properties = CommitProperties(custom_metadata={TRANSACTIONS: str(len(transactions))}, app_transactions=transactions)
    # Delta refuses rows whose column comments differ from the column comments of the table.
    without_comments = pa.schema([field.remove_metadata() for field in rows.schema])
    write_deltalake(
        delta_table,
        rows.cast(without_comments),
        mode="append",
        schema_mode="merge",  # writes null into columns that only a later version of the monitor knows
        commit_properties=properties,
        post_commithook_properties=_NO_HOOKS,
    )


def _try_twice(delta_table: DeltaTable, change: Callable[[], None]) -> None:
    """Change the table's metadata. The first try fails if a different monitor made the same change before."""
    try:
        change()
    except CommitFailedError:
        delta_table.update_incremental()
        change()


def _set_properties(delta_table: DeltaTable, properties: dict[str, str]) -> None:
    """Set the properties, or commit nothing if the table already has them."""
    if not properties.items() <= delta_table.metadata().configuration.items():
        delta_table.alter.set_table_properties(properties)


def _add_missing_columns(delta_table: DeltaTable, table: Table) -> None:
    """Add the columns that are new in this version of the monitor, after the existing columns.

    In existing rows, the new columns are null. An earlier version of the monitor can still append rows (`_commit`).
    """
    known = {field.name for field in delta_table.schema().fields}
    if missing := [field for field in Schema.from_arrow(table.schema).fields if field.name not in known]:
        delta_table.alter.add_columns(missing, post_commithook_properties=_NO_HOOKS)
        _log.info("added columns to table %s: %s", delta_table.table_uri, ", ".join(field.name for field in missing))


def _merge_small_files(table: DeltaTable) -> None:
    """Merge the small files of each day. If a file is damaged, merge all other days, and then raise the error."""
    try:
        with panic_as_error():
            table.optimize.compact()
    except DeltaError:
        for day in sorted({partition["date"] for partition in table.partitions()}):
            with suppress(DeltaError), panic_as_error():
                table.optimize.compact(partition_filters=[("date", "=", day)])
        raise
