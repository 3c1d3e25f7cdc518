"""Queries one version of a table without Spark.

DataFusion, which is a part of delta-rs, runs the queries. Do not use `to_pyarrow_table`, because it reads files in
threads of Arrow. These threads call Python code, and sometimes still run after the read. With `to_pyarrow_table`, one
of six commands crashed at exit (https://github.com/apache/arrow/issues/34314).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from streaming.config.secret_settings import hide_credentials, without_credentials
from streaming.delta.cells import EPOCH
from streaming.delta.tables import Table
from streaming.delta.tables.columns import TIME
from streaming.errors import REPAIR_REMEDY, RemedyError


class NoTableError(RemedyError):
    """Error: the table does not exist below the root."""


class TableReadError(RemedyError):
    """Error: the table cannot be read, so its content is unknown."""


class PanicError(DeltaError):
    """Error: delta-rs panicked, for example because of a damaged file."""


class StoredTable:
    """One version of a table. All queries read the same version, even if the monitor writes to the table."""

    def __init__(self, root: str, table: Table) -> None:
        """Open the newest version. Raises NoTableError and TableReadError."""
        self._path = f"{root.rstrip('/')}/{table.name}"
        self._stored = open_table(self._path)

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns. An old table can have fewer columns than `Table.schema`."""
        return frozenset(field.name for field in self._stored.schema().fields)

    def files(self) -> pa.Table:
        """Return one row for each file: its partition and its statistics. No file is opened."""
        return pa.table(self._stored.get_add_actions(flatten=True))

    def dates(self, cluster: str | None) -> list[date]:
        """Return the sorted dates on which a cluster has rows (None: any cluster). No file is opened."""
        files = self.files()
        partitions = zip(files["partition.cluster"].to_pylist(), files["partition.date"].to_pylist(), strict=True)
        return sorted({day for name, day in partitions if cluster in {None, name}})

    def query(self, sql: str) -> pa.Table:
        """Return the result of a query. In the query, the name of the table is `stored`. Raises TableReadError."""
        try:
            return run_query(self._stored, sql)
        except Exception as error:
            raise read_error(self._path, error) from error

    def rows_sampled_between(self, since: datetime, until: datetime) -> int:
        """Return the total number of rows of the files that contain samples between these times. No file is opened.

        If the log contains no sample times for a file, the result includes all rows of the file.
        """
        files = self.files()
        is_since = pc.fill_null(pc.greater_equal(files["max.sampled_time"], pa.scalar(since)), fill_value=True)
        is_until = pc.fill_null(pc.less_equal(files["min.sampled_time"], pa.scalar(until)), fill_value=True)
        return pc.sum(files.filter(pc.and_(is_since, is_until))["num_records"]).as_py() or 0

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Return the result of a query as rows. Raises TableReadError."""
        return as_rows(self.query(sql), self._path)


def run_query(table: DeltaTable, sql: str) -> pa.Table:
    """Return the result of a query. In the query, the name of the table is `stored`."""
    with panic_as_error():
        return pa.table(QueryBuilder().register("stored", table).execute(sql).read_all())


def can_query_file(path: Path) -> bool:
    """Return True if a query can read all rows of a local data file. The rows are read in small parts.

    In a path, DataFusion treats `?` and `*` as wildcards, and finds no file. A URI has no wildcards, so the query
    uses a URI.
    """
    query = QueryBuilder()
    try:
        with panic_as_error():
            location = sql_literal(path.absolute().as_uri())
            query.execute(f"CREATE EXTERNAL TABLE stored STORED AS PARQUET LOCATION {location}").read_all()
            for _ in query.execute("SELECT * FROM stored"):
                pass
    except Exception:  # noqa: BLE001 - DataFusion raises several types of errors
        return False
    return True


@contextmanager
def panic_as_error() -> Iterator[None]:
    """Raise PanicError if delta-rs panics. The panic itself is not an `Exception`.

    A panic in a batch would end the thread in which Spark calls Python. Then Spark would wait for ever.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # Python cannot import this class
            raise PanicError(str(error)) from error
        raise


def as_rows(found: pa.Table, path: str) -> list[dict[str, Any]]:
    """Convert rows of the table at `path` to Python objects.

    Raises TableReadError for damaged values: a time after the year 9999, or text that is not UTF-8.
    """
    try:
        columns = [_times(column) if column.type == TIME else column.to_pylist() for column in found.columns]
    except (OverflowError, ValueError) as error:
        raise read_error(path, error) from error
    return [dict(zip(found.column_names, values, strict=True)) for values in zip(*columns, strict=True)]


def _times(column: pa.ChunkedArray) -> list[datetime | None]:
    """Convert a column of times to Python objects.

    Arrow's own conversion of a time zone takes eight times as long as this function.

    >>> _times(pa.chunked_array([pa.array([None, 1_000_000], TIME)]))
    [None, datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.timezone.utc)]
    """
    microseconds = column.cast(pa.int64()).to_pylist()
    return [None if one is None else EPOCH + timedelta(microseconds=one) for one in microseconds]


def open_table(path: str, version: int | None = None) -> DeltaTable:
    """Open a version of a table (None: the newest version). Raises NoTableError and TableReadError."""
    try:
        with panic_as_error():
            return DeltaTable(rust_uri(path), version)
    except (OSError, PanicError) as error:
        raise read_error(path, error) from error
    except (DeltaError, UnicodeEncodeError) as error:
        raise NoTableError(
            f"{without_credentials(path)} is not a Delta table: specify the folder that contains the tables. If the"
            " tables do not exist yet, start the monitor"
        ) from error


def rust_uri(path: str) -> str:
    """Replace Hadoop's scheme `s3a` with `s3`, because delta-rs expects `s3`."""
    return path.replace("s3a://", "s3://", 1)


def where(equal: Mapping[str, str | int | bool | None], dates: Collection[date] | None = None) -> str:
    r"""Return the SQL condition for these column values and dates.

    Values are quoted, because a group id can contain any character. No row contains a value that cannot be stored, so
    the condition for such a value is `false`.

    >>> where({"group_id": "it's", "cluster": None}, [date(2026, 11, 23)])
    "true AND group_id = 'it''s' AND date IN ('2026-11-23')"
    >>> where({"group_id": "\ud800"})
    'true AND false'
    """
    terms = ["true"]
    for column, value in equal.items():
        if isinstance(value, str) and not is_storable(value):
            terms.append("false")
        elif value is not None:
            terms.append(f"{column} = {sql_literal(value)}")
    if dates is not None:
        days = ", ".join(f"'{day.isoformat()}'" for day in sorted(dates))
        terms.append(f"date IN ({days})" if dates else "false")
    return " AND ".join(terms)


def is_storable(text: str) -> bool:
    """Return False if the text contains a lone surrogate. No table can contain such a text."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def sql_time(microseconds: int) -> str:
    """Return a time in microseconds since 1970 as SQL.

    A literal `TIMESTAMP '...'` has nanoseconds, so it cannot be later than the year 2262.

    >>> print(sql_time(7))
    arrow_cast(7, 'Timestamp(Microsecond, Some("UTC"))')
    """
    return f"arrow_cast({microseconds}, 'Timestamp(Microsecond, Some(\"UTC\"))')"


def sql_literal(value: str | int) -> str:
    """Return the value as an SQL literal. The Python text of an int or a bool is valid SQL.

    >>> sql_literal("it's"), sql_literal(7), sql_literal(True)
    ("'it''s'", '7', 'True')
    """
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def read_error(path: str, error: Exception) -> TableReadError:
    """Return the error for a table that cannot be read. Pages show the error, so the error contains no credentials."""
    shown = without_credentials(path)
    # A password can contain a line feed, so credentials are hidden first, and then only the first line is shown.
    cause = hide_credentials(str(error).replace(path, shown).replace(rust_uri(path), shown)).partition("\n")[0]
    return TableReadError(
        f"{shown} cannot be read ({cause}): check that the storage is reachable, and that this process has"
        f" permission to read the table. If a file is damaged, stop the monitor and {REPAIR_REMEDY}"
    )
