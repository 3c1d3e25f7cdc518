"""The tables' upkeep, beside everything else: no sample and no batch waits for more than one step of it."""

from __future__ import annotations

import logging
import threading
import time
from datetime import date, timedelta

from deltalake.exceptions import DeltaError

from streaming.delta.cells import utc
from streaming.delta.on_disk import DeltaTables
from streaming.spark.causes import plain_cause

FIRST_AFTER_SECONDS = 60.0
"""A monitor that restarts more often than every `maintenance_interval_seconds` must have its tables tidied, too."""

_END_SECONDS = 10.0

_log = logging.getLogger(__name__)


class Upkeep:
    """Tidies the tables now and then; a table that cannot be tidied is reported and tried again the next time.

    All clusters' samplers ask; the first one for which it is due starts it. There is one at a time.
    """

    def __init__(self, tables: DeltaTables, retention_days: int, maintenance_interval_seconds: float) -> None:
        self._tables = tables
        self._retention = timedelta(days=retention_days)
        self._maintenance_interval_seconds = maintenance_interval_seconds
        self._due_seconds = time.monotonic() + min(FIRST_AFTER_SECONDS, maintenance_interval_seconds)
        self._asking = threading.Lock()
        self._running: threading.Thread | None = None

    def if_due(self, now_ms: int) -> None:
        """Start tidying if the last time is long enough ago and over."""
        with self._asking:
            is_running = self._running is not None and self._running.is_alive()
            if is_running or time.monotonic() < self._due_seconds:
                return
            self._due_seconds = time.monotonic() + self._maintenance_interval_seconds
            keep_from = (utc(now_ms) - self._retention).date()
            self._running = threading.Thread(target=self._tidy, args=(keep_from,), name="upkeep", daemon=True)
            self._running.start()

    def close(self) -> None:
        """Wait for what runs. Killed in between, it is only done again: each step is one commit or none."""
        if self._running is not None:
            self._running.join(_END_SECONDS)

    def _tidy(self, keep_from: date) -> None:
        started_seconds = time.monotonic()
        try:
            self._tables.tidy(keep_from)
        except (DeltaError, OSError) as error:
            _log.warning(
                "the tables could not be tidied (%s); trying again in %g s",
                plain_cause(error),
                self._maintenance_interval_seconds,
            )
        _log.debug("upkeep of the tables took %.1f s", time.monotonic() - started_seconds)
