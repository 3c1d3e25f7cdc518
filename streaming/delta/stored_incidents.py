"""Reads the last rows of incidents without Spark.

1. The last row of an incident describes the whole incident. `stored_at.last_rows` first finds the times of the last
   rows, and then reads only the dates of these times.
2. The column `evidence` has up to 500 facts. `open_incidents` and `find_incident_row` read this column.
   `incident_summaries` does not read this column.
3. While the monitor runs, an open incident has a row on each date (`run/samples/incident_writer.py`). So each open
   incident has a row on the last date of the table. But if a clock was set back, the last row of an open incident can
   be on an earlier date. So the last OPEN_DATES dates are read.

All functions raise NoTableError if the table does not exist, and TableReadError if it cannot be read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from typing import Any, Final

from streaming.delta.cells import LAST_MS, utc
from streaming.delta.stored_at import last_rows
from streaming.delta.stored_table import StoredTable
from streaming.delta.tables import INCIDENTS

OPEN_DATES: Final = 7
_KEY: Final = ("incident_id",)
_END: Final = utc(LAST_MS)
_SUMMARY: Final = tuple(name for name in INCIDENTS.schema.names if name != "evidence")


def open_incidents(root: str, cluster: str) -> Sequence[dict[str, Any]]:
    """Return the last row of each open incident (rule 3)."""
    dates = StoredTable(root, INCIDENTS).dates(cluster)[-OPEN_DATES:]
    state = (*_KEY, "sampled_time", "active")
    last = last_rows(root, INCIDENTS, _KEY, _END, columns=state, dates=dates, cluster=cluster)
    times = {row["incident_id"]: row["sampled_time"] for row in last if row["active"]}
    if not times:
        return []
    dates = sorted({time.date() for time in times.values()})
    rows = last_rows(root, INCIDENTS, _KEY, _END, dates=dates, cluster=cluster, active=True)
    return [row for row in rows if times.get(row["incident_id"]) == row["sampled_time"]]


def incident_summaries(root: str, cluster: str, dates: Collection[date]) -> Sequence[dict[str, Any]]:
    """Return the last row of each incident that has a row on these dates, without the evidence (rule 2)."""
    return last_rows(root, INCIDENTS, _KEY, _END, columns=_SUMMARY, dates=dates, cluster=cluster)


def find_incident_row(root: str, cluster: str, incident_id: str, dates: Collection[date]) -> dict[str, Any] | None:
    """Return the last row of an incident. If the incident has no row on `dates`, all dates are read."""
    for searched in (dates, None):
        rows = last_rows(root, INCIDENTS, _KEY, _END, dates=searched, cluster=cluster, incident_id=incident_id)
        if rows:
            return rows[0]
    return None
