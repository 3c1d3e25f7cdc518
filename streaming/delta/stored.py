"""The tables as they are read back, without Spark: by commands, while a monitor writes or none runs.

DataFusion, which delta-rs brings along, answers the queries. The other way, `to_pyarrow_table`, reads through a Python
file system from threads of Arrow that may outlive the read: one command in six was aborted at its exit
(https://github.com/apache/arrow/issues/34314).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from streaming.delta.tables import GROUP_CONDITIONS, Table
from streaming.errors import RemedyError

_ORDER = ("record_time", "sampled_time", "cluster", "offsets_topic_partition", "offsets_topic_offset")


class NoTableError(RemedyError):
    """There is no such table below the root, or none that can be read."""


def rust_uri(path: str) -> str:
    """delta-rs knows Hadoop's s3a by its plain name."""
    return path.replace("s3a://", "s3://", 1)


def stored_rows(
    root: str, table: Table, dates: Collection[date] | None = None, **equal: str | None
) -> Sequence[dict[str, Any]]:
    """Rows whose columns have the values given (None: any), in the order of log or samples. Raises NoTableError.

    Of some `dates` (UTC) alone it reads those files alone.

    Example: `stored_rows("/var/lib/tables", REBALANCES, group_id="orders", cluster=None)`.
    """
    rows = _selected(root, table, f"SELECT * FROM stored WHERE {_condition(equal, dates)}")  # noqa: S608 - quoted
    order = [column for column in _ORDER if column in table.schema.names]
    return sorted(rows, key=lambda row: tuple(row[column] for column in order))


def active_conditions(root: str, cluster: str | None, group_id: str | None = None) -> Sequence[dict[str, Any]]:
    """Rows of `group_conditions` that began and have not ended, by group and condition. Raises NoTableError."""
    keys = "cluster, group_id, condition"
    among = _condition({"cluster": cluster, "group_id": group_id})
    last = f"SELECT DISTINCT ON ({keys}) * FROM stored WHERE {among} ORDER BY {keys}, sampled_time DESC"  # noqa: S608
    return [row for row in _selected(root, GROUP_CONDITIONS, last) if row["active"]]


def _condition(equal: Mapping[str, str | None], dates: Collection[date] | None = None) -> str:
    """SQL of it. Names of groups hold any character.

    >>> _condition({"group_id": "it's", "cluster": None}, [date(2026, 11, 23)])
    "true AND group_id = 'it''s' AND date IN ('2026-11-23')"
    """
    terms = ["true", *(f"{column} = {_quoted(value)}" for column, value in equal.items() if value is not None)]
    if dates is not None:
        terms.append(f"date IN ({', '.join(_quoted(day.isoformat()) for day in sorted(dates))})" if dates else "false")
    return " AND ".join(terms)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _selected(root: str, table: Table, sql: str) -> list[dict[str, Any]]:
    path = f"{root.rstrip('/')}/{table.name}"
    try:
        stored = DeltaTable(rust_uri(path))
    except DeltaError as error:
        raise NoTableError(f"{path} is no Delta table: name the folder of the tables, or start the monitor") from error
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        found = QueryBuilder().register("stored", stored).execute(sql).read_all()
    except Exception as error:
        raise _unreadable(path, error) from error
    rows: list[dict[str, Any]] = pa.table(found).to_pylist()
    return rows


def _unreadable(path: str, error: Exception) -> NoTableError:
    what = str(error).partition("\n")[0]
    return NoTableError(f"{path} cannot be read ({what}): is the storage reachable, with rights to read?")
