"""A new checkpoint in place of an old one, over the same tables. What can fail comes before what changes something.

1. Damaged tables refuse a rebuild, or are repaired first if that was asked for. What is taken out of them is kept.
2. The new checkpoint is made beside the old one. Only when it is complete do they change places.
3. If the last step fails, the old checkpoint is put back. A rebuild that failed has changed nothing but tables that it
   was asked to repair.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streaming.config.load import Settings
from streaming.delta.on_disk import DeltaTables
from streaming.delta.table_files import check_tables, damaged_tables
from streaming.delta.table_repair import repair_table
from streaming.errors import STAYS, RemedyError, storage_remedy
from streaming.jars import resolve
from streaming.java import find_java
from streaming.run.query.prepare import make_checkpoint
from streaming.run.writers import WriterClaim
from streaming.spark.causes import plain_cause
from streaming.spark.checkpoint import CheckpointLock, canonical_place
from streaming.spark.files import Files
from streaming.spark.folder import LocalFolder, local_folder
from streaming.spark.session import jvm_pid, spark_session


class RebuildError(RemedyError):
    """Nothing was rebuilt, and the old checkpoint is where it was."""

    exit_code = STAYS


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """Where the old checkpoint is (None: there was none), and what was repaired of the tables, a sentence each."""

    old_checkpoint: str | None
    repairs: Sequence[str] = ()


def rebuild_checkpoint(settings: Settings, stamp: str, *, is_repairing: bool = False) -> Rebuilt:
    """Move the old checkpoint aside as `<checkpoint>.<stamp>` and put a new one in its place, by rules 1 to 3."""
    with CheckpointLock(settings.paths.checkpoint) as lock:
        repairs = _repair_tables(settings.paths.tables, stamp) if is_repairing else ()
        check_tables(settings.paths.tables)
        with spark_session(settings.spark, resolve("spark"), find_java().parent.parent) as session:
            lock.write_holder(jvm_pid(session))
            with _claim(session, settings):
                return Rebuilt(_rebuild(session, settings, stamp), repairs)


def _claim(session: SparkSession, settings: Settings) -> WriterClaim:
    """Rows that another monitor writes meanwhile would be missing from what the new checkpoint leaves out."""
    paths = settings.paths
    place = canonical_place(paths.checkpoint)
    open_tables = partial(Files, session, paths.tables)
    return WriterClaim(open_tables, settings.kafka.cluster, place, _now_ms, threading.Event())


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _repair_tables(root: str, stamp: str) -> Sequence[str]:
    folder = local_folder(root)
    if folder is None:
        return []
    damaged = [name for name, _ in damaged_tables(folder)]
    return [repair_table(LocalFolder(folder.root / name), Path(folder.root, f"{name}.{stamp}")) for name in damaged]


def _rebuild(session: SparkSession, settings: Settings, stamp: str) -> str | None:
    """Rules 2 and 3."""
    checkpoint = settings.paths.checkpoint.rstrip("/")
    new = Files(session, f"{checkpoint}.{stamp}.new")
    tables = DeltaTables(settings.paths.tables, versions_kept_hours=settings.tables.versions_kept_hours)
    try:
        make_checkpoint(session, settings, new, tables)
        return _exchange(Files(session, checkpoint), new, f"{checkpoint}.{stamp}")
    except (OSError, PySparkException, Py4JError) as failure:
        raise RebuildError(_refused(checkpoint, failure)) from failure
    finally:
        if new.uri("") != f"{checkpoint}/":
            with suppress(OSError, Py4JError):
                new.remove()


def _exchange(old: Files, new: Files, aside: str) -> str | None:
    checkpoint = old.uri("").rstrip("/")
    had_one = old.exists()
    if had_one:
        old.move_to(aside)
    try:
        new.move_to(checkpoint)
    except OSError:
        if had_one:
            old.move_to(checkpoint)
        raise
    return aside if had_one else None


def _refused(checkpoint: str, failure: Exception) -> str:
    remedy = storage_remedy(failure) if isinstance(failure, OSError) else "check the tables, then run it again"
    return f"nothing was rebuilt, checkpoint {checkpoint} is as it was ({plain_cause(failure)}): {remedy}"
