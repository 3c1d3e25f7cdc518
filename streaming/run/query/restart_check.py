"""Check whether a restart of a failed query can help.

1. If the checkpoint or a table is damaged, the run ends, because a restart cannot repair the damage. If a table was
   removed or replaced, the run also ends, because rows may be missing. If a different process only removed old log
   entries, the run continues (`delta/on_disk.py`).
2. If the checkpoint was removed, the run ends, and the next run creates a new checkpoint.
3. Spark's client needs seconds to read a checkpoint on remote storage. So the files of a remote checkpoint are checked
   only after a failure with a new reason. Tables on remote storage are not checked.
4. If remote storage does not answer, the run continues, because a restart of the query can help.
"""

from __future__ import annotations

import errno

from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from streaming.delta.on_disk import DeltaTables
from streaming.delta.table_files import UnusableTableError, refuse_damaged_tables
from streaming.errors import RemedyError
from streaming.run.failures import SparkEndedError
from streaming.run.query.prepare import check_age
from streaming.spark.causes import plain_cause
from streaming.spark.checkpoint import CheckpointDamagedError, CheckpointError, find_damaged_file, read_identity
from streaming.spark.files import Files
from streaming.spark.folder import local_folder
from streaming.spark.session import is_running


class CheckpointRemovedError(RemedyError):
    """Error: the checkpoint was removed while the monitor was running. The next start creates a new checkpoint."""


def check_restart_helps(session: SparkSession, files: Files, tables: DeltaTables, *, is_new: bool) -> None:
    """Raise RemedyError if Spark has ended, or if files are missing or damaged (rules 1 to 4).

    `is_new` is False if the previous failure had the same reason.
    """
    if not is_running(session):
        raise SparkEndedError
    refuse_damaged_tables(tables.root)
    uri = files.uri("").rstrip("/")
    folder = local_folder(uri)
    try:
        if (folder or is_new) and (damage := find_damaged_file(folder or files)):
            raise CheckpointDamagedError(uri, damage)
        if read_identity(files) is None:
            raise CheckpointRemovedError(f"checkpoint {uri} was removed: the next start creates a new one")
        check_age(files, _last_batch(tables))
    except OSError as error:
        if folder is not None or error.errno != errno.EIO:
            raise CheckpointError(f"checkpoint {uri} cannot be read: {plain_cause(error)}") from error


def _last_batch(tables: DeltaTables) -> int:
    """Return the last batch in the tables, or -1 if remote storage does not answer (rule 4)."""
    try:
        return tables.last_batch()
    except DeltaError as error:
        if local_folder(tables.root) is None:
            return -1
        raise UnusableTableError(
            f"a table in {tables.root} was removed or replaced while the monitor was running ({plain_cause(error)}):"
            " restore the table from a backup, or run `rebalance-monitor rebuild`. After a rebuild, the next run can"
            " write missing rows again only if their records are still in the topic"
        ) from error
