"""Refuse a checkpoint if, after its last use, a monitor wrote rows with a different checkpoint.

Example: `paths.checkpoint` was changed from A to B, and later back to A. Checkpoint A does not know which records were
read with B. So with A, the monitor would read these records again and write their rows twice.

1. The folder of the tables contains one file for each cluster and each `source.kind`. The file contains the id of the
   checkpoint that wrote rows last. Each `source.kind` has a separate file, because each kind writes different rows.
2. A new checkpoint is always allowed, because its monitor does not write existing rows again (`prepare.py`). The id in
   the file becomes `Identity.after` of the new checkpoint.
3. A start is allowed only if the file contains the id of this checkpoint or the id in `Identity.after`.
4. If the file is missing, or if a read or a write of the file fails, the monitor does not check the id. A failure is
   logged.
5. Before a repair removes rows that may belong to a cluster, it replaces the ids of each `source.kind` with the names
   of the table and the repair. Then only a new checkpoint is allowed (rule 2). With the new checkpoint, the monitor
   writes some of the removed rows again. These rows are newer than the last remaining row of their group, and the topic
   still contains their records.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from py4j.protocol import Py4JError

from streaming.config.settings import ADMIN_API_SOURCE, OFFSETS_TOPIC_SOURCE
from streaming.errors import STAYS, RemedyError
from streaming.run.query.table_progress import RowsMissingError
from streaming.run.writers import FOLDER, digest
from streaming.spark.causes import plain_cause
from streaming.spark.checkpoint import Identity
from streaming.spark.files import Files

_REPAIRED = "repaired"

_log = logging.getLogger(__name__)


class CheckpointPassedError(RemedyError):
    """Error: after the last use of this checkpoint, a monitor wrote rows with a different checkpoint."""

    exit_code = STAYS


class LastCheckpoint:
    """The id of the checkpoint that wrote a cluster's rows last. `open_files` opens the folder of the tables."""

    def __init__(self, open_files: Callable[[], Files], cluster: str, source: str) -> None:
        self._open_files = open_files
        self._cluster = cluster
        self._name = _name(cluster, source)

    def read(self) -> str:
        """Return the id in the file, or an empty string if the id is unknown."""
        try:
            return (self._open_files().read(self._name) or b"").decode(errors="replace")
        except (OSError, Py4JError) as error:
            self._report(error)
            return ""

    def take(self, identity: Identity, checkpoint: str) -> None:
        """Store the id of this checkpoint. Call this method before the first append.

        Raises CheckpointPassedError or RowsMissingError if rule 3 does not allow the start.
        """
        last = self.read()
        if last not in {"", identity.checkpoint_id, identity.after}:
            if last.startswith(f"{_REPAIRED} "):
                raise RowsMissingError(_repair_text(self._open_files().uri(""), self._cluster, last))
            raise CheckpointPassedError(
                f"checkpoint {checkpoint} does not know the last rows of cluster {self._cluster!r}, because a monitor"
                " with a different checkpoint wrote them. This monitor would write these rows again: run"
                " `rebalance-monitor rebuild`, or set paths.checkpoint to the checkpoint that was used last"
            )
        if last != identity.checkpoint_id:
            try:
                self._open_files().write(self._name, identity.checkpoint_id.encode())
            except (OSError, Py4JError) as error:
                self._report(error)

    def _report(self, error: Exception) -> None:
        cause = plain_cause(error)
        _log.warning("%s: cannot detect rows of a different checkpoint: %s: %s", self._cluster, self._name, cause)


def store_repair(files: Files, cluster: str, table: str, stamp: str) -> None:
    """Refuse all existing checkpoints of a cluster (rule 5). `files` is the folder of the tables. Raises OSError."""
    for source in (OFFSETS_TOPIC_SOURCE, ADMIN_API_SOURCE):
        name = _name(cluster, source)
        last = (files.read(name) or b"").decode(errors="replace")
        earlier = last if last.startswith(f"{_REPAIRED} ") else _REPAIRED
        files.write(name, f"{earlier} {table}.{stamp}".encode())


def _repair_text(root: str, cluster: str, stored: str) -> str:
    names = sorted({repair.partition(".")[0] for repair in stored.split()[1:]})
    return (
        f"rows of cluster {cluster!r} may be missing in {', '.join(names)} (tables in {root.rstrip('/')}), because"
        " `rebuild --repair-tables` removed damaged files: run `rebalance-monitor rebuild` for this cluster. After a"
        " rebuild, the next run can write missing rows again only if their records are still in the topic"
    )


def _name(cluster: str, source: str) -> str:
    return f"{FOLDER}/last-{digest(cluster)}-{source}"
