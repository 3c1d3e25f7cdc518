"""Writes `docs/TABLES.md` from the schemas of the tables: `python -m tests.table_reference`."""

from __future__ import annotations

from pathlib import Path

from streaming.delta.tables import describe_tables

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


def table_reference() -> str:
    """Return the text of the reference."""
    return f"{_INTRODUCTION}\n" + "\n".join(describe_tables())


if __name__ == "__main__":
    TABLES_MD.write_text(table_reference())
