"""The tables as they are read back, without Spark: by commands, while a monitor writes or none runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from streaming.errors import RemedyError
from streaming.sinks.tables import Table

_LOG_ORDER = ("record_time", "cluster", "kafka_partition", "kafka_offset")


class NoTableError(RemedyError):
    """There is no such table below the root."""


def rust_uri(path: str) -> str:
    """delta-rs knows Hadoop's s3a by its plain name."""
    return path.replace("s3a://", "s3://", 1)


def stored_rows(
    root: str, table: Table, dates: Collection[date] | None = None, **equal: str | None
) -> Sequence[dict[str, Any]]:
    """Rows whose columns have the values given (None: any), in the order of the log. Raises NoTableError.

    Of some `dates` (UTC) alone it reads those files alone.

    Example: `stored_rows("/var/lib/tables", REBALANCES, group_id="orders", cluster=None)`.
    """
    path = f"{root.rstrip('/')}/{table.name}"
    filters: list[tuple[str, str, Any]] = [(column, "=", value) for column, value in equal.items() if value is not None]
    if dates is not None:
        filters.append(("date", "in", sorted(dates)))
    try:
        found = DeltaTable(rust_uri(path)).to_pyarrow_table(filters=filters or None)
    except DeltaError as error:
        raise NoTableError(f"{path} is no Delta table: name the folder of the tables, or start the monitor") from error
    rows: list[dict[str, Any]] = found.to_pylist()
    return sorted(rows, key=lambda row: tuple(row[column] for column in _LOG_ORDER))
