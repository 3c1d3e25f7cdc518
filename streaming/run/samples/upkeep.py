"""Maintain the tables in a separate thread. A sample or a batch waits for at most one short step of the maintenance."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from datetime import date, timedelta

from streaming.delta.cells import utc
from streaming.delta.on_disk import DeltaTables
from streaming.delta.table_files import UnusableTableError, find_table_damage
from streaming.errors import REPAIR_REMEDY
from streaming.spark.causes import plain_cause
from streaming.spark.folder import local_folder

FIRST_AFTER_SECONDS = 60.0
"""Time from the start to the first maintenance. It is short, so that a monitor that restarts often also runs it."""

_END_SECONDS = 10.0

_log = logging.getLogger(__name__)


class Upkeep:
    """The periodic maintenance of the tables. The samplers of all clusters share one object.

    Only one maintenance runs at a time. A failure is logged, and the next maintenance runs after the usual interval.
    """

    def __init__(self, tables: DeltaTables, retention_days: int, maintenance_interval_seconds: float) -> None:
        self._tables = tables
        self._retention = timedelta(days=retention_days)
        self._maintenance_interval_seconds = maintenance_interval_seconds
        self._due_seconds = time.monotonic() + min(FIRST_AFTER_SECONDS, maintenance_interval_seconds)
        self._deletion_time_ms: int | None = None
        self._lock = threading.Lock()
        self._running: threading.Thread | None = None

    def start_if_due(self, deletion_time_ms: int | None) -> None:
        """Start the maintenance if the interval has passed and the previous maintenance has ended.

        The maintenance deletes rows that are older than `retention_days` at the latest `ClusterSample.deletion_time_ms`
        of all clusters. If all these times are None, no row is deleted.
        """
        with self._lock:
            if deletion_time_ms is not None:
                self._deletion_time_ms = max(deletion_time_ms, self._deletion_time_ms or 0)
            is_running = self._running is not None and self._running.is_alive()
            if is_running or time.monotonic() < self._due_seconds:
                return
            self._due_seconds = time.monotonic() + self._maintenance_interval_seconds
            now_ms = self._deletion_time_ms
            keep_from = date.min if now_ms is None else (utc(now_ms) - self._retention).date()
            self._running = threading.Thread(target=self._tidy, args=(keep_from,), name="upkeep", daemon=True)
            self._running.start()

    def close(self) -> None:
        """Wait a few seconds for the maintenance. If it is killed, the tables stay valid: each step is one commit."""
        if self._running is not None:
            self._running.join(_END_SECONDS)

    def _tidy(self, keep_from: date) -> None:
        started_seconds = time.monotonic()
        for path, failure in self._tables.tidy(keep_from).items():
            _log.warning(
                "the maintenance of table %s failed (%s); trying again in %g s",
                path,
                _damage_text(path) or plain_cause(failure),
                self._maintenance_interval_seconds,
            )
        _log.debug("the maintenance of the tables took %.1f s", time.monotonic() - started_seconds)


def _damage_text(path: str) -> str | None:
    with suppress(OSError, UnusableTableError):
        folder = local_folder(path)
        if folder is not None and (damage := find_table_damage(folder, reads_rows=True)):
            return f"{damage}: stop the monitor and {REPAIR_REMEDY}"
    return None
