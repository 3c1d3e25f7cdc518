"""Replace a checkpoint with a new checkpoint for the same tables.

The old checkpoint is moved only after all other steps have succeeded.

1. A rebuild is refused if tables are damaged. With the option `--repair-tables`, the tables are repaired first. The
   repair moves damaged files to a separate folder and deletes no file. A repair is refused while a monitor writes to
   the tables. Before a repair removes rows that may belong to a cluster, it stores a note in the folder of the
   tables. Because of this note, all existing checkpoints of the cluster are refused until the cluster's checkpoint is
   rebuilt (rule 5 of `run.query.last_checkpoint`).
2. The new checkpoint is created in the parent folder of the old one. It replaces the old one only when the new one is
   complete.
3. If the swap fails, the old checkpoint is moved back. So a failed rebuild changes only the repaired tables.
4. If a rebuild is killed, its new checkpoint can remain. On a local disk, the next rebuild removes it.
"""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streaming.config.load import Settings
from streaming.config.types.paths import canonical_location
from streaming.delta.on_disk import DeltaTables
from streaming.delta.table_files import check_folder, damaged_tables, refuse_damaged_tables, refusing_unusable_files
from streaming.delta.table_repair import repair_table
from streaming.errors import STAYS, RemedyError, storage_remedy
from streaming.run.query.last_checkpoint import store_repair
from streaming.run.query.prepare import make_checkpoint
from streaming.run.writers import WriterClaim
from streaming.spark.causes import plain_cause
from streaming.spark.checkpoint import CheckpointLock
from streaming.spark.files import Files
from streaming.spark.folder import LocalFolder, local_folder
from streaming.spark.session import jvm_pid, spark_session
from streaming.wall_clock import now_ms


class RebuildError(RemedyError):
    """Error: the rebuild failed, and the old checkpoint is unchanged."""

    exit_code = STAYS


def rebuild_checkpoint(settings: Settings, stamp: str, on_repair: Callable[[str], None] | None = None) -> str | None:
    """Rename the old checkpoint to `<checkpoint>.<stamp>`, and move a new checkpoint to the old path (rules 1 to 3).

    Returns the new location of the old checkpoint, or None if there was no old checkpoint. If `on_repair` is set,
    damaged tables are repaired. `on_repair` is called with one sentence immediately after the repair of each table.
    """
    root = settings.paths.tables
    with CheckpointLock(settings.paths.checkpoint, is_rebuild=True) as lock:
        check_folder(root)
        if on_repair is None:
            refuse_damaged_tables(root)
        with spark_session(settings.spark) as session:
            lock.write_holder(jvm_pid(session))
            with _claim(session, settings, is_repair=on_repair is not None):
                if on_repair is not None:
                    _repair_tables(root, Files(session, root), stamp, on_repair)
                    refuse_damaged_tables(root)
                return _rebuild(session, settings, stamp)


def _claim(session: SparkSession, settings: Settings, *, is_repair: bool) -> WriterClaim:
    """Claim the exclusive right to write the cluster's rows to the tables.

    Without this claim, a monitor with the old checkpoint could write rows during the rebuild. Later, a monitor with the
    new checkpoint would write the same rows again.
    """
    paths = settings.paths
    place, open_tables = canonical_location(paths.checkpoint), partial(Files, session, paths.tables)
    return WriterClaim(open_tables, settings.kafka.cluster, place, now_ms, threading.Event(), is_repair=is_repair)


def _repair_tables(root: str, files: Files, stamp: str, on_repair: Callable[[str], None]) -> None:
    folder = local_folder(root)
    if folder is None:
        return

    def store_loss(table: str, clusters: Collection[str]) -> None:
        for cluster in sorted(clusters):
            store_repair(files, cluster, table, stamp)

    with refusing_unusable_files(root):
        for name, _ in damaged_tables(folder, reads_rows=True):
            aside = Path(folder.root, f"{name}.{stamp}")
            on_repair(repair_table(LocalFolder(folder.root / name), aside, partial(store_loss, name)))


def _rebuild(session: SparkSession, settings: Settings, stamp: str) -> str | None:
    checkpoint = settings.paths.checkpoint.rstrip("/")
    new = Files(session, f"{checkpoint}.{stamp}.new")
    tables = DeltaTables(settings.paths.tables, versions_kept_hours=settings.tables.versions_kept_hours)
    try:
        _remove_leftovers(checkpoint)  # rule 4
        make_checkpoint(session, settings, new, tables)
        return _swap(Files(session, checkpoint), new, f"{checkpoint}.{stamp}")
    except (OSError, PySparkException, Py4JError) as failure:
        remedy = "check the tables, then run the rebuild again"
        if isinstance(failure, OSError):
            remedy = storage_remedy(failure)
        raise RebuildError(
            f"the rebuild failed, checkpoint {checkpoint} is unchanged ({plain_cause(failure)}): {remedy}"
        ) from failure
    finally:
        if new.uri("") != f"{checkpoint}/":
            with suppress(OSError, Py4JError):
                new.remove()


def _remove_leftovers(checkpoint: str) -> None:
    folder = local_folder(checkpoint)
    if folder is not None:
        parent, leftover = folder.root.parent, re.compile(rf"{re.escape(folder.root.name)}\.[0-9]{{8}}T[0-9]{{6}}\.new")
        for name in filter(leftover.fullmatch, LocalFolder(parent).names("")):
            shutil.rmtree(parent / name)


def _move_back(old: Files, checkpoint: str, aside: str, failure: Exception) -> None:
    try:
        old.move_to(checkpoint)
    except (OSError, Py4JError):  # the JVM ended, or the storage fails
        raise RebuildError(
            f"the rebuild failed, and checkpoint {checkpoint} is now in {aside} ({plain_cause(failure)}): move it back,"
            " or run the rebuild again"
        ) from failure


def _swap(old: Files, new: Files, aside: str) -> str | None:
    checkpoint = old.uri("").rstrip("/")
    had_one = old.exists()
    if had_one:
        old.move_to(aside)
    try:
        new.move_to(checkpoint)
    except (OSError, Py4JError) as failure:
        if had_one:
            _move_back(old, checkpoint, aside, failure)
        raise
    return aside if had_one else None
