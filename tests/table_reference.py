"""Writes `docs/TABLES.md` from the schemas of the tables: `python -m tests.table_reference`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from streaming.delta.tables import TABLES

TABLES_MD = Path(__file__).parents[1] / "docs" / "TABLES.md"

_INTRODUCTION = """\
# Tables

The Delta tables are in the folder `paths.tables`. Each table is partitioned by cluster and date. Times are UTC. While
the monitor runs, it merges small files and deletes rows older than `tables.retention_days`.

An old version of a table stays readable for two hours (`tables.versions_kept_hours`). So a query must finish within
two hours. If a streaming read of a table pauses for more than two hours, it cannot continue. Start the read again with
a new checkpoint.

[Example queries in SQL](../dashboards/QUERIES.md). `python -m tests.table_reference` writes this page.
"""


def describe_tables() -> Iterator[str]:
    """Return the Markdown lines that describe all tables."""
    for table in TABLES:
        yield f"## `{table.name}`\n\nEach row describes {table.row}.\n\n| column | type | description |\n|---|---|---|"
        for field in table.schema:
            comment = (field.metadata or {}).get(b"comment", b"").decode()
            yield f"| `{field.name}` | {_type_name(field.type)} | {comment} |"
        yield ""


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array of {_type_name(kind.value_type)}"
    if pa.types.is_struct(kind):
        return "struct (" + ", ".join(field.name for field in kind) + ")"
    return {"timestamp[us, tz=UTC]": "timestamp", "date32[day]": "date"}.get(str(kind), str(kind))


def table_reference() -> str:
    """Return the text of the reference."""
    return f"{_INTRODUCTION}\n" + "\n".join(describe_tables())


if __name__ == "__main__":
    TABLES_MD.write_text(table_reference())
