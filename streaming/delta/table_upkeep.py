"""Keeps a Delta table small: its log, its files, and the memory of its handle.

1. Old versions (log entries and replaced files) are stored for `versions_kept_hours`. So a reader can continue to read
   an old version that it has opened. Older versions cannot be read (no time travel). Delta's defaults are 30 days for
   the log and one week for replaced files. With a batch every 2 s, 30 days are 1.3 million log entries, and each append
   lists all entries.
2. By default, delta-rs deletes old log entries after each append. With 10,000 log entries, an append took 83 ms. The
   deletion took 55 ms of this time. So only the maintenance deletes old log entries.
3. A checkpoint of the log is written every `COMMITS_PER_CHECKPOINT` commits. Then the table is opened again from the
   new checkpoint. A handle stores a list of files for each commit, and each append reads all stored lists. After 2,000
   commits, an append needed 200 ms to read the lists.
4. Transaction identifiers never expire, because they ensure that a batch is appended only once. Every checkpoint
   contains all transaction identifiers. So `delta.setTransactionRetentionDuration` is not set.
5. If a writer is killed, files without a log entry can remain. So vacuum checks all files, and not only files that the
   log marks as removed.
6. If a step fails, the later steps still run. If a damaged data file cannot be merged, the small files of all other
   days are still merged. So the log and the number of files stay small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import date

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

COMMITS_PER_CHECKPOINT = 25
"""Commits between two checkpoints. Writing a checkpoint takes 12 ms of processor time. Opening the table from the
checkpoint takes 5 ms. Divided by 25 commits, this is less than the time of one append.
"""

Step = Callable[[DeltaTable], object]


def retention_properties(versions_kept_hours: int) -> Mapping[str, str]:
    """Return the table properties of rules 1 and 3. Other Delta readers and writers also use the table properties."""
    kept = f"interval {versions_kept_hours} hours"
    return {
        "delta.logRetentionDuration": kept,
        "delta.deletedFileRetentionDuration": kept,
        "delta.checkpointInterval": str(COMMITS_PER_CHECKPOINT),
    }


def set_properties(table: DeltaTable, versions_kept_hours: int) -> None:
    """Set the table properties to the values from the current settings.

    If a value has changed, one commit is added to the log.
    """
    expected, stored = retention_properties(versions_kept_hours), table.metadata().configuration
    if any(stored.get(name) != value for name, value in expected.items()):
        table.alter.set_table_properties(dict(expected))


def upkeep_steps(keep_from: date, replaced_files_kept_hours: int) -> Iterator[Step]:
    """Return the maintenance steps for one table, in the order of execution. The table is valid after each step."""
    yield lambda table: table.delete(f"date < '{keep_from.isoformat()}'")
    yield _merge_small_files
    yield lambda table: table.vacuum(
        replaced_files_kept_hours, dry_run=False, enforce_retention_duration=False, full=True
    )


def _merge_small_files(table: DeltaTable) -> None:
    """Merge the small files of each day.

    If a file is damaged, raise DeltaError after the merge of all other days (rule 6).
    """
    try:
        table.optimize.compact()
    except DeltaError:
        for day in sorted({partition["date"] for partition in table.partitions()}):
            with suppress(DeltaError):
                table.optimize.compact(partition_filters=[("date", "=", day)])
        raise
