"""Reads incidents from the table.

1. `recent` returns the incidents that changed in the last RECENT_DAYS days. `recent` does not read the evidence,
   because the cause and the sentences have their own columns. `find` also finds older incidents in the table.
2. The reader caches results for CACHE_SECONDS. While the cluster is ready, this does not delay open incidents, because
   pages take open incidents from the monitor state.
3. If the reader cannot read the table, the page shows the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from deltalake.exceptions import DeltaError

from streaming.delta.cells import utc
from streaming.delta.incident_rows import restore_incident
from streaming.delta.stored import find_incident_row, incident_summaries
from streaming.errors import RemedyError
from streaming.evaluation.incidents.story import Story
from streaming.page.incidents.listing import IncidentEntry, KnownIncident, StoredIncidents, incident_entry
from streaming.page.recent_answers import RecentAnswers

RECENT_DAYS = 7
CACHE_SECONDS = 10.0
_IS_ID = re.compile("[0-9a-f]{12}")


class IncidentReader:
    """Reads the table in the folder `root`. `monotonic_seconds` is a clock that never goes backwards."""

    def __init__(self, root: str, cluster: str, monotonic_seconds: Callable[[], float]) -> None:
        self._root = root
        self._cluster = cluster
        self._recent = RecentAnswers[str | None, StoredIncidents](monotonic_seconds)

    def recent(self, now_ms: int) -> StoredIncidents:
        """Return the incidents that changed in the last RECENT_DAYS days (rule 1)."""
        return self._cached(None, now_ms)

    def find(self, incident_id: str, now_ms: int) -> StoredIncidents:
        """Return the incident with this id. The result is empty if there is no such incident."""
        return self._cached(incident_id, now_ms) if _IS_ID.fullmatch(incident_id) else StoredIncidents()

    def _cached(self, incident_id: str | None, now_ms: int) -> StoredIncidents:
        return self._recent.get(incident_id, CACHE_SECONDS, lambda: self._read(incident_id, now_ms))

    def _read(self, incident_id: str | None, now_ms: int) -> StoredIncidents:
        since = utc(now_ms) - timedelta(days=RECENT_DAYS)
        dates = [since.date() + timedelta(days=number) for number in range(RECENT_DAYS + 2)]
        try:
            if incident_id is None:
                rows = incident_summaries(self._root, self._cluster, dates)
                return StoredIncidents(tuple(_summary(row) for row in rows if row["sampled_time"] >= since))
            row = find_incident_row(self._root, self._cluster, incident_id, dates)
            entries = [] if row is None else [incident_entry(KnownIncident(restore_incident(row), not row["active"]))]
            return StoredIncidents(tuple(entries))
        except (RemedyError, DeltaError, OSError, ValueError) as error:
            return StoredIncidents(error=f"the table incidents cannot be read ({type(error).__name__})")


def _summary(row: Mapping[str, Any]) -> IncidentEntry:
    story, is_current = Story(*row["story"]), not row["active"]
    return IncidentEntry(restore_incident(row), row["cause"], row["runbook_section"], story, is_current)
