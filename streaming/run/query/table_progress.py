"""At the start of the monitor, detect tables that have lost rows.

If the last log entries of a table are missing, Delta opens an older version of the table. If a table was removed, Delta
creates it again. In both cases, the table looks undamaged, and the query does not read old records again.

1. After each batch and at the stop, the monitor writes the progress of each table to a file. The progress is the
   version of the table and the last batch that this checkpoint wrote. The version alone is not sufficient, because
   several clusters write to the same tables. The batch number alone is not sufficient, because rows from samples have
   no batch. If the last rows from samples are missing, the version shows this loss only until other clusters have
   written the same number of versions again.
2. The file is written after the tables. If the process is killed between the two writes, the progress in the file is
   lower than the progress of the tables. This is allowed.
3. The start is refused if the progress of a table is lower than the progress in the file. As a remedy, `rebuild`
   creates a new checkpoint, so the monitor reads the topic from its start. The monitor can then write missing
   rows again only if the topic still contains their records.
4. If `paths.tables` has changed, the file is ignored, because a new folder may be empty.
5. A missing file is ignored. A damaged file is also ignored, but a warning is logged.
6. A repair can remove rows. `last_checkpoint` detects this loss.
"""

from __future__ import annotations

import logging

import msgspec

from streaming.config.types.paths import canonical_location
from streaming.delta.on_disk import DeltaTables, TableProgress
from streaming.errors import STAYS, RemedyError
from streaming.spark.files import Files

PROGRESS_FILE = "table_progress.json"

_log = logging.getLogger(__name__)


class RowsMissingError(RemedyError):
    """Error: a table has lost rows that the monitor wrote."""

    exit_code = STAYS


class StoredProgress(msgspec.Struct, frozen=True):
    """The content of the file: the folder of the tables, and the progress by table name."""

    tables: str
    progress: dict[str, TableProgress]


class ProgressFile:
    """The file with the progress of the tables of one checkpoint."""

    def __init__(self, cluster: str, files: Files, tables: DeltaTables) -> None:
        self._cluster = cluster
        self._files = files
        self._tables = tables
        self._stored: dict[str, TableProgress] = {}

    def store(self) -> None:
        """Write the file if the tables have changed (rules 1 and 2). Raises OSError."""
        progress = self._tables.progress()
        if progress != self._stored:
            stored = StoredProgress(canonical_location(self._tables.root), progress)
            self._files.write(PROGRESS_FILE, msgspec.json.encode(stored))
            self._stored = progress

    def check(self) -> None:
        """Raise RowsMissingError if the progress of a table is lower than in the file (rules 3 to 5)."""
        try:
            content = self._files.read(PROGRESS_FILE)
            stored = None if content is None else msgspec.json.decode(content, type=StoredProgress)
        except (OSError, msgspec.MsgspecError) as error:
            _log.warning(
                "%s: %s cannot be read and is ignored. Missing rows of tables are not detected at this start: %s",
                self._cluster,
                PROGRESS_FILE,
                error,
            )
            return
        if stored is None or stored.tables != canonical_location(self._tables.root):
            return
        for name, now in self._tables.progress().items():
            before = stored.progress.get(name, now)
            if now.version < before.version or now.last_batch < before.last_batch:
                raise RowsMissingError(
                    f"table {self._tables.root}/{name} misses its last rows (it has version {now.version} and batch"
                    f" {now.last_batch}, but the monitor wrote version {before.version} and batch {before.last_batch}):"
                    " restore the table from a backup, or run `rebalance-monitor rebuild`. After a rebuild, the next"
                    " run can write missing rows again only if their records are still in the topic"
                )
