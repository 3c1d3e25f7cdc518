"""Reads what the tables contained at a given time, without Spark."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from streaming.delta.cells import EPOCH
from streaming.delta.stored import ORDER
from streaming.delta.stored_table import StoredTable, sql_time, where
from streaming.delta.tables import Table

_FEW_TIMES = 200
"""Maximum number of times in one SQL condition. The lag is written at most 2,880 times per date."""


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

    If several rows of a key have the latest time, the row with the highest position is returned. If a condition or
    cause ends and starts at the same sample, the row of the start is returned. Without `columns`, the rows have all
    columns. If the table does not have a column yet, the value is None.

    The first query reads only keys and times, and finds the times of the last rows. The second query reads only the
    rows on the dates of these times. A single query with `DISTINCT ON` would take ten times as long as the two queries
    (page/DESIGN.md). In each row, `date` must be the date of `record_time`, or of `sampled_time` if the table has no
    `record_time`. In `assignment_imbalance`, only rows with the measure `partitions` meet this condition.
    """
    time, group_by = _time_column(table), ", ".join(keys)
    stored = StoredTable(root, table)
    existing = stored.columns
    selected = [name for name in columns or table.schema.names if name in existing]
    matching = f"{where(equal, dates)} AND {_until(table, until)}"
    last = f"SELECT {group_by}, max({time}) AS last_time FROM stored WHERE {{}} GROUP BY {group_by}"  # noqa: S608 - quoted
    distinct = f"SELECT DISTINCT last_time FROM ({last.format(matching)})"  # noqa: S608 - quoted
    times = [row["last_time"] for row in stored.rows(distinct)]
    narrow = f"{matching} AND {_at_times(time, times)}"
    on = " AND ".join(f"now.{key} = last.{key}" for key in keys)
    rows = stored.rows(
        f"SELECT {', '.join(f'now.{name}' for name in selected)}"  # noqa: S608 - quoted
        f" FROM (SELECT * FROM stored WHERE {narrow}) now"
        f" JOIN ({last.format(narrow)}) last ON {on} AND now.{time} = last.last_time",
    )
    missing = dict.fromkeys(name for name in columns or table.schema.names if name not in existing)
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
    """Return the last `count` rows at or before `until`, the newest row first.

    Rows whose column `state` is in `without_states` are not returned.
    """
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
    """Return the time of the last sample at or before `until`.

    Return None if the table has no row at or before `until`. Only the last two dates up to `until` are read. If all
    rows of the last date are after `until`, the result is a time on the previous date.
    """
    stored = StoredTable(root, table)
    dates = [day for day in stored.dates(cluster) if day <= until.date()][-2:]
    sql = f"SELECT max(sampled_time) AS last FROM stored WHERE {where({'cluster': cluster}, dates)}"  # noqa: S608 - quoted
    (row,) = stored.rows(f"{sql} AND {_until(table, until)}")
    last: datetime | None = row["last"]
    return last


def covered_times(root: str, table: Table, cluster: str | None) -> tuple[datetime, datetime] | None:
    """Return the times of the first and the last row. Return None if the table has no row.

    Only the first and the last date are read. The log of the table contains the dates.
    """
    stored, time = StoredTable(root, table), _time_column(table)
    dates = stored.dates(cluster)
    first_and_last = where({"cluster": cluster}, {*dates[:1], *dates[-1:]})
    times = f"SELECT min({time}) AS first, max({time}) AS last FROM stored WHERE {first_and_last}"  # noqa: S608 - quoted
    (row,) = stored.rows(times)
    return None if row["first"] is None else (row["first"], row["last"])


def _time_column(table: Table) -> str:
    return "record_time" if "record_time" in table.schema.names else "sampled_time"


def _at_times(column: str, times: Sequence[datetime]) -> str:
    """Return an SQL condition for rows with these times.

    If there are more than `_FEW_TIMES` times, the condition contains only their dates. Then rows with other times on
    these dates also match.
    """
    days = where({}, {time.date() for time in times})
    few = ", ".join(_sql_time(time) for time in times) if len(times) <= _FEW_TIMES else ""
    return f"{days} AND {column} IN ({few})" if few else days


def _until(table: Table, until: datetime) -> str:
    """Return the SQL condition for rows at or before a time in UTC.

    The condition contains the date, so the query skips files.

    >>> from streaming.delta.tables import LAG_CAUSES
    >>> print(_until(LAG_CAUSES, EPOCH + timedelta(milliseconds=1_795_385_040_000)))
    date <= '2026-11-22' AND sampled_time <= arrow_cast(1795385040000000, 'Timestamp(Microsecond, Some("UTC"))')
    """
    return f"date <= '{until.date().isoformat()}' AND {_time_column(table)} <= {_sql_time(until)}"


def _sql_time(time: datetime) -> str:
    return sql_time((time - EPOCH) // timedelta(microseconds=1))
