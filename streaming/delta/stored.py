"""The tables as they are read back, without Spark: by commands, while a monitor writes or none runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from streaming.delta.tables import GROUP_CONDITIONS, Table
from streaming.errors import RemedyError

_ORDER = ("record_time", "sampled_time", "cluster", "kafka_partition", "kafka_offset")


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
    rows: list[dict[str, Any]] = _read(root, table, equal, dates).to_pylist()
    order = [column for column in _ORDER if column in table.schema.names]
    return sorted(rows, key=lambda row: tuple(row[column] for column in order))


def standing_conditions(root: str, cluster: str | None, group_id: str | None = None) -> Sequence[dict[str, Any]]:
    """Rows of `group_conditions` that began and have not ended, by group and condition. Raises NoTableError."""
    found = _read(root, GROUP_CONDITIONS, {"cluster": cluster, "group_id": group_id}).sort_by("sampled_time")
    keys = ["cluster", "group_id", "condition"]
    kept = [name for name in found.column_names if name not in {*keys, "date"}]
    last = found.group_by(keys, use_threads=False).aggregate([(name, "last") for name in kept])
    named = last.rename_columns([name.removesuffix("_last") for name in last.column_names])
    rows: list[dict[str, Any]] = named.filter(named["holds"]).to_pylist()
    return sorted(rows, key=lambda row: tuple(row[name] for name in keys))


def _read(root: str, table: Table, equal: Mapping[str, str | None], dates: Collection[date] | None = None) -> pa.Table:
    path = f"{root.rstrip('/')}/{table.name}"
    filters: list[tuple[str, str, Any]] = [(column, "=", value) for column, value in equal.items() if value is not None]
    if dates is not None:
        filters.append(("date", "in", sorted(dates)))
    try:
        return DeltaTable(rust_uri(path)).to_pyarrow_table(filters=filters or None)
    except DeltaError as error:
        raise NoTableError(f"{path} is no Delta table: name the folder of the tables, or start the monitor") from error
    except OSError as error:
        what = str(error).partition("\n")[0]
        raise NoTableError(f"{path} cannot be read ({what}): is the storage reachable, with rights to read?") from error
