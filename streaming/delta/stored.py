"""Reads rows from the tables without Spark, for commands and pages.

The monitor can write to the tables while the module reads them. All functions raise NoTableError if a table does not
exist, and TableReadError if it cannot be read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import date
from typing import Any

from streaming.delta.stored_table import NoTableError, StoredTable, where
from streaming.delta.tables import GROUP_CONDITIONS, GROUP_GENERATIONS, GROUP_LAG, LAG_CAUSES, Table

ORDER = ("record_time", "sampled_time", "cluster", "offsets_topic_partition", "offsets_topic_offset")
"""The columns by which rows are sorted. Columns that a table does not have are left out."""


def stored_rows(
    root: str, table: Table, dates: Collection[date] | None = None, **equal: str | None
) -> Sequence[dict[str, Any]]:
    """Return the rows of a table with the given column values. None matches every value.

    The rows are sorted by time, cluster and position. If `dates` (UTC) is set, only the files of these dates are read.

    Example: `stored_rows("/var/lib/tables", REBALANCES, group_id="orders", cluster=None)`.
    """
    rows = StoredTable(root, table).rows(f"SELECT * FROM stored WHERE {where(equal, dates)}")  # noqa: S608 - quoted
    order = [column for column in ORDER if column in table.schema.names]
    return sorted(rows, key=lambda row: tuple(row[column] for column in order))


def has_row(root: str, table: Table, **equal: str | None) -> bool:
    """Return True if the table has a row with the given column values. None matches every value."""
    return bool(StoredTable(root, table).rows(f"SELECT 1 FROM stored WHERE {where(equal)} LIMIT 1"))  # noqa: S608 - quoted


def active_conditions(root: str, cluster: str | None, group_id: str | None = None) -> Sequence[dict[str, Any]]:
    """Return the last row of each active condition, sorted by cluster, group and condition."""
    return _last_active(root, GROUP_CONDITIONS, "cluster, group_id, condition", cluster=cluster, group_id=group_id)


def active_lag_causes(root: str, cluster: str | None) -> Sequence[dict[str, Any]]:
    """Return the last row of each group whose cause of lag has not ended."""
    return _last_active(root, LAG_CAUSES, "cluster, group_id", cluster=cluster)


def _last_active(root: str, table: Table, keys: str, **equal: str | None) -> Sequence[dict[str, Any]]:
    """Return the last row of each key, but only if this row is active.

    If the start row and the end row of a key have the same time, the start row is the last row.
    """
    order = f"{keys}, sampled_time DESC, active DESC"
    last = f"SELECT DISTINCT ON ({keys}) * FROM stored WHERE {where(equal)} ORDER BY {order}"  # noqa: S608 - quoted
    return [row for row in StoredTable(root, table).rows(last) if row["active"]]


def stored_clusters(root: str) -> Sequence[str]:
    """Return the names of the clusters that have a row in `group_generations` or `group_lag`, sorted."""
    files = [StoredTable(root, GROUP_GENERATIONS).files()]
    with suppress(NoTableError):
        files.append(StoredTable(root, GROUP_LAG).files())
    return sorted({name for of_table in files for name in of_table["partition.cluster"].to_pylist()})
