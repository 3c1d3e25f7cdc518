"""A new checkpoint in place of an old one, over the same tables."""

from __future__ import annotations

from pyspark.sql import SparkSession

from streaming.config.load import Settings
from streaming.jars import resolve
from streaming.java import find_java
from streaming.run.prepare import prepare_checkpoint
from streaming.sinks.delta import DeltaTables
from streaming.spark.checkpoint import CheckpointLock
from streaming.spark.files import Files
from streaming.spark.session import jvm_pid, spark_session, stop_spark


def rebuild_checkpoint(settings: Settings, stamp: str) -> str | None:
    """Move the old checkpoint aside as `<checkpoint>.<stamp>` and make a new one. Returns where the old one is."""
    checkpoint = settings.paths.checkpoint
    with CheckpointLock(checkpoint) as lock:
        session = spark_session(settings.spark, resolve("spark"), find_java().parent.parent)
        lock.write_holder(jvm_pid(session))
        try:
            return _rebuild(session, settings, stamp)
        finally:
            stop_spark(session)


def _rebuild(session: SparkSession, settings: Settings, stamp: str) -> str | None:
    files = Files(session, settings.paths.checkpoint)
    had_one = files.move_away(stamp)
    prepare_checkpoint(
        session,
        settings,
        files,
        DeltaTables(settings.paths.tables, versions_kept_hours=settings.tables.versions_kept_hours),
    )
    return files.moved_to(stamp) if had_one else None
