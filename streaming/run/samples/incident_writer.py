"""Write the rows of changed incidents to the table INCIDENTS.

1. Each incident that opened, changed or ended gets a row. If it changed several times before its row is written, only
   its last row is written, because this row describes the whole incident.
2. If an append raises an error, it is unknown whether the rows were written. All rows of an append have the same sample
   time. If the next sample does not find this time in the table, the rows are written again.
3. The row of an open incident is written again on each UTC date. So the deletion of old dates never deletes the last
   row of an open incident.
4. While the table cannot be written, the monitor keeps the rows of at most MAX_UNWRITTEN ended incidents. If there are
   more, the incidents that have waited longest get no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Final, NamedTuple

from streaming.delta.cells import Row, utc
from streaming.delta.incident_rows import incident_row, restore_incident
from streaming.delta.on_disk import DeltaTables
from streaming.delta.rows import arrow_table
from streaming.delta.stored import open_incidents, sampled_times
from streaming.delta.tables import INCIDENTS
from streaming.evaluation.incidents.incident import Incident
from streaming.evaluation.incidents.story import story
from streaming.evaluation.incidents.tracker import IncidentUpdate
from streaming.page.rendering import utc_text

MAX_UNWRITTEN: Final = 1_000


class _Append(NamedTuple):
    sampled_at_ms: int
    incidents: Sequence[Incident]


class IncidentWriter:
    """Writes the incident rows of one cluster. Only the sampler's thread calls the methods."""

    def __init__(self, cluster: str, tables: DeltaTables) -> None:
        self._cluster = cluster
        self._tables = tables
        self._row_dates: Mapping[str, date] = {}
        self._unwritten: dict[str, Incident] = {}
        self._in_doubt: _Append | None = None

    def restore(self) -> Sequence[Incident]:
        """Read the open incidents from the table."""
        stored = open_incidents(self._tables.root, self._cluster)
        self._row_dates = {row["incident_id"]: row["date"] for row in stored}
        return [restore_incident(row) for row in stored]

    def write(self, update: IncidentUpdate, sampled_at_ms: int) -> None:
        """Append the missing rows after a sample."""
        self._add_unwritten(update.changed)
        if self._in_doubt is not None:
            self._resolve_doubt(self._in_doubt)
        changed, repeated = tuple(self._unwritten.values()), self._without_row_today(update.open, sampled_at_ms)
        rows = [*_rows(changed, sampled_at_ms), *_rows(repeated, sampled_at_ms, are_repeated=True)]
        if rows:
            self._in_doubt = _Append(sampled_at_ms, (*changed, *repeated))
            self._tables.append(INCIDENTS, arrow_table(INCIDENTS, rows))
            self._confirm(self._in_doubt)
        is_open = {one.incident_id for one in update.open}
        self._row_dates = {key: day for key, day in self._row_dates.items() if key in is_open}

    def _add_unwritten(self, changed: Iterable[Incident]) -> None:
        self._unwritten |= {one.incident_id: one for one in changed}
        ended = [incident_id for incident_id, one in self._unwritten.items() if not one.is_open]
        for incident_id in ended[:-MAX_UNWRITTEN]:
            del self._unwritten[incident_id]

    def _without_row_today(self, is_open: Iterable[Incident], sampled_at_ms: int) -> Sequence[Incident]:
        today, written = utc(sampled_at_ms).date(), (one for one in is_open if one.incident_id not in self._unwritten)
        return [one for one in written if self._row_dates[one.incident_id] < today]  # the clock can be set back

    def _resolve_doubt(self, append: _Append) -> None:
        time = utc(append.sampled_at_ms)
        if sampled_times(self._tables.root, INCIDENTS, time, time, self._cluster):
            self._confirm(append)
        self._in_doubt = None

    def _confirm(self, append: _Append) -> None:
        """Mark the rows of `append` as written. If an incident changed after the append, it still needs a new row."""
        day, self._in_doubt = utc(append.sampled_at_ms).date(), None
        self._row_dates = {**self._row_dates, **{one.incident_id: day for one in append.incidents}}
        written = {one.incident_id: one for one in append.incidents}
        self._unwritten = {key: one for key, one in self._unwritten.items() if one != written.get(key)}


def _rows(incidents: Iterable[Incident], sampled_at_ms: int, *, are_repeated: bool = False) -> Sequence[Row]:
    return [incident_row(sampled_at_ms, one, story(one, utc_text), is_repeated=are_repeated) for one in incidents]
