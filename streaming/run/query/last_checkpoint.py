"""Detect rows that a monitor with a different checkpoint wrote while this checkpoint was not used.

`run/writers.py` prevents two monitors that write at the same time. This module covers monitors that run one after the
other, for example because `paths.checkpoint` was changed and later changed back. The earlier checkpoint would read the
same records again, so their rows would be in the tables twice.

1. The folder of the tables has one file for each cluster and each kind of source (the log, or polls). The file contains
   the id of the checkpoint that wrote last. The kinds have separate files, because their rows come from different
   records.
2. A new checkpoint does not repeat the rows that the tables already have (`prepare.py`). So it stores the id of the
   previous checkpoint (`Identity.after`).
3. A start is refused if the file contains neither the id of this checkpoint nor the id of the previous checkpoint.
4. If the file does not exist, or cannot be read or written, the monitor continues. A failure is logged.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable

from py4j.protocol import Py4JError

from streaming.errors import STAYS, RemedyError
from streaming.run.writers import FOLDER
from streaming.spark.causes import plain_cause
from streaming.spark.checkpoint import Identity
from streaming.spark.files import Files

_log = logging.getLogger(__name__)


class CheckpointPassedError(RemedyError):
    """Error: a monitor with a different checkpoint wrote rows after the last use of this checkpoint."""

    exit_code = STAYS


class LastCheckpoint:
    """The id of the checkpoint that wrote a cluster's rows last. `open_files` opens the folder of the tables."""

    def __init__(self, open_files: Callable[[], Files], cluster: str, source: str) -> None:
        self._open_files = open_files
        self._cluster = cluster
        digest = hashlib.sha256(cluster.encode(errors="surrogatepass")).hexdigest()[:16]
        self._name = f"{FOLDER}/last-{digest}-{source}"

    def read(self) -> str:
        """Return the id. Return an empty string if it is not known."""
        try:
            return (self._open_files().read(self._name) or b"").decode(errors="replace")
        except (OSError, Py4JError) as error:
            self._report(error)
            return ""

    def check(self, identity: Identity, checkpoint: str) -> None:
        """Raise CheckpointPassedError if a different checkpoint wrote rows that this checkpoint does not know."""
        last = self.read()
        if last not in {"", identity.checkpoint_id, identity.after}:
            raise CheckpointPassedError(
                f"checkpoint {checkpoint} does not know the last rows of cluster {self._cluster!r}, because a monitor"
                " with a different checkpoint wrote them. This monitor would write these rows again: run"
                " `rebalance-monitor rebuild`, or set paths.checkpoint to the checkpoint that was used last"
            )

    def store(self, identity: Identity) -> None:
        """Store the id of this checkpoint. Call this method before the first append."""
        try:
            self._open_files().write(self._name, identity.checkpoint_id.encode())
        except (OSError, Py4JError) as error:
            self._report(error)

    def _report(self, error: Exception) -> None:
        cause = plain_cause(error)
        _log.warning("%s: cannot detect rows of a different checkpoint: %s: %s", self._cluster, self._name, cause)
