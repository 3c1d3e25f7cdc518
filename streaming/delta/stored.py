"""Reads rows from the tables without Spark, for commands and pages.

Functions with the parameter `until` ignore all rows after this time. The monitor can write to the tables while the
module reads them. All functions raise NoTableError if a table does not exist, and TableReadError if the table cannot be
read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any

from streaming.delta.cells import EPOCH, LAST_MS, utc
from streaming.delta.stored_table import NoTableError, StoredTable, sql_time, where
from streaming.delta.tables import GROUP_CONDITIONS, GROUP_GENERATIONS, GROUP_LAG, INCIDENTS, LAG_CAUSES, Table

ORDER = ("record_time", "sampled_time", "cluster", "offsets_topic_partition", "offsets_topic_offset")
"""The columns by which rows are sorted. Columns that a table does not have are left out."""

END = utc(LAST_MS)
OPEN_DATES = 7
"""Number of dates that are searched for open incidents.

While the monitor runs, an open incident has a row on each date (`run/samples/incident_writer.py`). But if a clock was
set back, the last row of an open incident can be on an earlier date than the last date of the table. So more than one
date is searched.
"""
_INCIDENT = ("incident_id",)
_SUMMARY = tuple(name for name in INCIDENTS.schema.names if name != "evidence")
"""The columns of a list of incidents. The column `evidence` is omitted, because it has up to 500 facts."""

_FEW_TIMES = 200
"""Maximum number of times in one SQL condition (`_at_times`). For example, lag has up to 2,880 times per date."""


def stored_rows(
    root: str, table: Table, dates: Collection[date] | None = None, **equal: str | None
) -> Sequence[dict[str, Any]]:
    """Return the rows of a table with the given column values, sorted by time, cluster and position.

    None matches every value. If `dates` (UTC) is set, only the files of these dates are read.
    """
    rows = StoredTable(root, table).rows(f"SELECT * FROM stored WHERE {where(equal, dates)}")  # noqa: S608 - quoted
    order = [column for column in ORDER if column in table.schema.names]
    return sorted(rows, key=lambda row: tuple(row[column] for column in order))


def has_row(root: str, table: Table, **equal: str | None) -> bool:
    """Return True if the table has a row with the given column values. None matches every value."""
    return bool(StoredTable(root, table).rows(f"SELECT 1 FROM stored WHERE {where(equal)} LIMIT 1"))  # noqa: S608 - quoted


def active_conditions(root: str, cluster: str | None, group_id: str | None = None) -> Sequence[dict[str, Any]]:
    """Return the last row of each active condition, sorted by cluster, group and condition."""
    keys = ("cluster", "group_id", "condition")
    return _last_active(root, GROUP_CONDITIONS, keys, cluster, group_id)


def active_lag_causes(root: str, cluster: str | None) -> Sequence[dict[str, Any]]:
    """Return the last row of each group whose cause of lag has not ended."""
    return _last_active(root, LAG_CAUSES, ("cluster", "group_id"), cluster)


def _last_active(
    root: str, table: Table, keys: Sequence[str], cluster: str | None, group_id: str | None = None
) -> Sequence[dict[str, Any]]:
    rows = last_rows(root, table, keys, END, cluster=cluster, group_id=group_id)
    active = [row for row in rows if row["active"]]
    return sorted(active, key=lambda row: tuple(row[key] for key in keys))


def stored_clusters(root: str) -> Sequence[str]:
    """Return the names of the clusters that have a row in `group_generations` or `group_lag`, sorted."""
    names = {*table_clusters(root, GROUP_GENERATIONS)}
    with suppress(NoTableError):
        names.update(table_clusters(root, GROUP_LAG))
    return sorted(names)


def table_clusters(root: str, table: Table) -> Sequence[str]:
    """Return the names of the clusters that have a row in the table, sorted."""
    return sorted(set(StoredTable(root, table).files()["partition.cluster"].to_pylist()))


def last_rows(  # noqa: PLR0913 - the parts of one query
    root: str,
    table: Table,
    keys: Sequence[str],
    until: datetime,
    *,
    columns: Sequence[str] | None = None,
    dates: Collection[date] | None = None,
    **equal: str | int | bool | None,
) -> Sequence[dict[str, Any]]:
    """Return the last row of each key at or before `until`.

    If several rows have the latest time, the row with the highest position is returned. If a condition or cause ends
    and starts at the same sample, the row of the start is returned. Without `columns`, the rows have all columns. If
    the table does not have a column yet, the value is None.

    The first query reads only keys and times, and finds the times of the last rows. The second query reads only the
    rows on the dates of these times. A single query with `DISTINCT ON` would take ten times as long as the two queries
    (page/DESIGN.md). In each row, `date` must be the date of `record_time`, or of `sampled_time` if the table has no
    `record_time`. In `assignment_imbalance`, only rows with the measure `partitions` meet this condition.
    """
    time, group_by = _time_column(table), ", ".join(keys)
    stored = StoredTable(root, table)
    existing, wanted = stored.columns, columns or table.schema.names
    selected = [name for name in wanted if name in existing]
    matching = f"{where(equal, dates)} AND {_until(table, until)}"
    last = f"SELECT {group_by}, max({time}) AS last_time FROM stored WHERE {{}} GROUP BY {group_by}"  # noqa: S608 - quoted
    distinct = f"SELECT DISTINCT last_time FROM ({last.format(matching)})"  # noqa: S608 - quoted
    times = [row["last_time"] for row in stored.rows(distinct)]
    narrow = f"{matching} AND {_at_times(time, times)}"
    on = " AND ".join(f"now.{key} = last.{key}" for key in keys)
    rows = stored.rows(
        f"SELECT {', '.join(f'now.{name}' for name in selected)}"  # noqa: S608 - quoted
        f" FROM (SELECT * FROM stored WHERE {narrow}) now"
        f" JOIN ({last.format(narrow)}) last ON {on} AND now.{time} = last.last_time"
    )
    missing = dict.fromkeys(name for name in wanted if name not in existing)
    order = [name for name in (*ORDER, "active") if name in selected]
    rows.sort(key=lambda row: tuple(row[name] for name in order))
    return list({tuple(row[key] for key in keys): {**row, **missing} for row in rows}.values())


def latest_rows(
    root: str,
    table: Table,
    count: int,
    until: datetime,
    *,
    without_states: Collection[str] = (),
    **equal: str | int | bool | None,
) -> Sequence[dict[str, Any]]:
    """Return the last `count` rows at or before `until`, newest first, except rows with a state in `without_states`."""
    order = ", ".join(f"{name} DESC" for name in ORDER if name in table.schema.names and name != "cluster")
    matching = f"{where(equal)} AND {_until(table, until)}"
    matching += "".join(f" AND NOT ({where({'state': state})})" for state in without_states)
    last = f"SELECT * FROM stored WHERE {matching} ORDER BY {order} LIMIT {count:d}"  # noqa: S608 - quoted
    rows = StoredTable(root, table).rows(last)
    missing = dict.fromkeys(table.schema.names)
    return [{**missing, **row} for row in rows]


def has_rows(root: str, table: Table, day: date, until: datetime, cluster: str | None) -> bool:
    """Return True if the table has a row of this date at or before `until`."""
    matching = f"{where({'cluster': cluster}, [day])} AND {_until(table, until)}"
    return bool(StoredTable(root, table).rows(f"SELECT 1 FROM stored WHERE {matching} LIMIT 1"))  # noqa: S608 - quoted


def sampled_times(root: str, table: Table, since: datetime, until: datetime, cluster: str | None) -> Sequence[datetime]:
    """Return the sorted times of the samples from `since` to `until` that have a row in the table."""
    dates = {since.date() + timedelta(days) for days in range((until.date() - since.date()).days + 1)}
    matching = f"{where({'cluster': cluster}, dates)} AND sampled_time >= {_sql_time(since)} AND {_until(table, until)}"
    sql = f"SELECT DISTINCT sampled_time FROM stored WHERE {matching} ORDER BY sampled_time"  # noqa: S608 - quoted
    return [row["sampled_time"] for row in StoredTable(root, table).rows(sql)]


def last_sampled_time(root: str, table: Table, until: datetime, cluster: str | None) -> datetime | None:
    """Return the time of the last sample at or before `until`, or None if there is none.

    Two dates are read, because all rows of the last date can be after `until`.
    """
    stored = StoredTable(root, table)
    dates = [day for day in stored.dates(cluster) if day <= until.date()][-2:]
    sql = f"SELECT max(sampled_time) AS last FROM stored WHERE {where({'cluster': cluster}, dates)}"  # noqa: S608 - quoted
    (row,) = stored.rows(f"{sql} AND {_until(table, until)}")
    last: datetime | None = row["last"]
    return last


def covered_times(root: str, table: Table, cluster: str | None) -> tuple[datetime, datetime] | None:
    """Return the times of the first and the last row, or None if the table has no row. Only two dates are read."""
    stored, time = StoredTable(root, table), _time_column(table)
    dates = stored.dates(cluster)
    first_and_last = where({"cluster": cluster}, {*dates[:1], *dates[-1:]})
    times = f"SELECT min({time}) AS first, max({time}) AS last FROM stored WHERE {first_and_last}"  # noqa: S608 - quoted
    (row,) = stored.rows(times)
    return None if row["first"] is None else (row["first"], row["last"])


def _time_column(table: Table) -> str:
    return "record_time" if "record_time" in table.schema.names else "sampled_time"


def _at_times(column: str, times: Sequence[datetime]) -> str:
    """Return an SQL condition for rows with these times, or with their dates if there are more than `_FEW_TIMES`."""
    days = where({}, {time.date() for time in times})
    few = ", ".join(_sql_time(time) for time in times) if len(times) <= _FEW_TIMES else ""
    return f"{days} AND {column} IN ({few})" if few else days


def _until(table: Table, until: datetime) -> str:
    """Return the SQL condition for rows at or before a time in UTC.

    The condition also contains the date, so that the query can skip files.

    >>> from streaming.delta.tables import LAG_CAUSES
    >>> print(_until(LAG_CAUSES, EPOCH + timedelta(milliseconds=1_795_385_040_000)))
    date <= '2026-11-22' AND sampled_time <= arrow_cast(1795385040000000, 'Timestamp(Microsecond, Some("UTC"))')
    """
    return f"date <= '{until.date().isoformat()}' AND {_time_column(table)} <= {_sql_time(until)}"


def _sql_time(time: datetime) -> str:
    return sql_time((time - EPOCH) // timedelta(microseconds=1))


def open_incidents(root: str, cluster: str) -> Sequence[dict[str, Any]]:
    """Return the last row of each open incident. This row describes the whole incident."""
    dates = StoredTable(root, INCIDENTS).dates(cluster)[-OPEN_DATES:]
    state = (*_INCIDENT, "sampled_time", "active")
    last = last_rows(root, INCIDENTS, _INCIDENT, END, columns=state, dates=dates, cluster=cluster)
    times = {row["incident_id"]: row["sampled_time"] for row in last if row["active"]}
    if not times:
        return []
    dates = sorted({time.date() for time in times.values()})
    rows = last_rows(root, INCIDENTS, _INCIDENT, END, dates=dates, cluster=cluster, active=True)
    return [row for row in rows if times.get(row["incident_id"]) == row["sampled_time"]]


def incident_summaries(root: str, cluster: str, dates: Collection[date]) -> Sequence[dict[str, Any]]:
    """Return the last row of each incident that has a row on these dates, without the evidence."""
    return last_rows(root, INCIDENTS, _INCIDENT, END, columns=_SUMMARY, dates=dates, cluster=cluster)


def find_incident_row(root: str, cluster: str, incident_id: str, dates: Collection[date]) -> dict[str, Any] | None:
    """Return the last row of an incident. If the incident has no row on `dates`, all dates are read."""
    for searched in (dates, None):
        rows = last_rows(root, INCIDENTS, _INCIDENT, END, dates=searched, cluster=cluster, incident_id=incident_id)
        if rows:
            return rows[0]
    return None
