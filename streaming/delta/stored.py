"""Reads rows from the tables without Spark, for commands and pages.

The monitor can write to the tables while this module reads them.

DataFusion, which is a part of delta-rs, runs the queries. `to_pyarrow_table` is not used. That function reads files in
threads of Arrow. These threads call Python code, and sometimes continue after the read. Because of these threads, one
of six commands crashed at exit (https://github.com/apache/arrow/issues/34314).
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
    """Error: the table does not exist below the root, or it cannot be read."""


def rust_uri(path: str) -> str:
    """Replace Hadoop's scheme `s3a` by `s3`. delta-rs expects `s3`."""
    return path.replace("s3a://", "s3://", 1)


def stored_rows(
    root: str, table: Table, dates: Collection[date] | None = None, **equal: str | None
) -> Sequence[dict[str, Any]]:
    """Return the rows with the given column values. None matches every value. Raises NoTableError.

    The rows are sorted by time, cluster and position. If `dates` (UTC) is set, only the files of these dates are read.

    Example: `stored_rows("/var/lib/tables", REBALANCES, group_id="orders", cluster=None)`.
    """
    rows = _query(root, table, f"SELECT * FROM stored WHERE {_where(equal, dates)}")  # noqa: S608 - quoted
    order = [column for column in _ORDER if column in table.schema.names]
    return sorted(rows, key=lambda row: tuple(row[column] for column in order))


def active_conditions(root: str, cluster: str | None, group_id: str | None = None) -> Sequence[dict[str, Any]]:
    """Return the last row of each active condition, sorted by cluster, group and condition. Raises NoTableError."""
    keys = "cluster, group_id, condition"
    where = _where({"cluster": cluster, "group_id": group_id})
    last = f"SELECT DISTINCT ON ({keys}) * FROM stored WHERE {where} ORDER BY {keys}, sampled_time DESC"  # noqa: S608
    return [row for row in _query(root, GROUP_CONDITIONS, last) if row["active"]]


def _where(equal: Mapping[str, str | None], dates: Collection[date] | None = None) -> str:
    """Return the SQL condition. Values are quoted, because a group id can contain every character.

    >>> _where({"group_id": "it's", "cluster": None}, [date(2026, 11, 23)])
    "true AND group_id = 'it''s' AND date IN ('2026-11-23')"
    """
    terms = ["true", *(f"{column} = {_quote(value)}" for column, value in equal.items() if value is not None)]
    if dates is not None:
        terms.append(f"date IN ({', '.join(_quote(day.isoformat()) for day in sorted(dates))})" if dates else "false")
    return " AND ".join(terms)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _query(root: str, table: Table, sql: str) -> list[dict[str, Any]]:
    path = f"{root.rstrip('/')}/{table.name}"
    try:
        stored = DeltaTable(rust_uri(path))
    except DeltaError as error:
        raise NoTableError(
            f"{path} is not a Delta table: specify the folder that contains the tables, or start the monitor"
        ) from error
    except OSError as error:
        raise _read_error(path, error) from error
    try:
        found = QueryBuilder().register("stored", stored).execute(sql).read_all()
    except Exception as error:
        raise _read_error(path, error) from error
    rows: list[dict[str, Any]] = pa.table(found).to_pylist()
    return rows


def _read_error(path: str, error: Exception) -> NoTableError:
    cause = str(error).partition("\n")[0]
    return NoTableError(
        f"{path} cannot be read ({cause}): check that the storage is reachable and that you may read it"
    )
