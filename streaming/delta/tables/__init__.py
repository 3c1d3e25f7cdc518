"""Defines the schema of every Delta table. `describe_tables` generates `docs/TABLES.md` from the schemas.

All tables are partitioned by cluster and date. If a row describes a record, its key is the position of the record
(cluster, offsets_topic_partition, offsets_topic_offset). If a row describes a sample, its key contains the time of the
sample. A row of `assignment_imbalance` describes a record and a sample, so its key contains both. The package imports
no other package.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from streaming.delta.tables.assignments import ASSIGNMENT_DRIFT
from streaming.delta.tables.columns import Table
from streaming.delta.tables.fairness import ASSIGNMENT_IMBALANCE, WHAT_IF
from streaming.delta.tables.groups import COMMIT_GAPS, GROUP_CONDITIONS, GROUP_GENERATIONS, REBALANCES
from streaming.delta.tables.incidents import INCIDENTS
from streaming.delta.tables.lag import GROUP_LAG, LAG_CAUSES, PARTITION_STATUS
from streaming.delta.tables.quarantine import QUARANTINE

__all__ = [
    "ASSIGNMENT_DRIFT",
    "ASSIGNMENT_IMBALANCE",
    "COMMIT_GAPS",
    "GROUP_CONDITIONS",
    "GROUP_GENERATIONS",
    "GROUP_LAG",
    "INCIDENTS",
    "LAG_CAUSES",
    "PARTITIONED_BY",
    "PARTITION_STATUS",
    "QUARANTINE",
    "REBALANCES",
    "SCHEMA_VERSION",
    "TABLES",
    "WHAT_IF",
    "Table",
    "describe_tables",
]

SCHEMA_VERSION = 2
PARTITIONED_BY = ("cluster", "date")

TABLES = (
    GROUP_GENERATIONS,
    REBALANCES,
    COMMIT_GAPS,
    GROUP_CONDITIONS,
    ASSIGNMENT_DRIFT,
    ASSIGNMENT_IMBALANCE,
    WHAT_IF,
    GROUP_LAG,
    PARTITION_STATUS,
    LAG_CAUSES,
    INCIDENTS,
    QUARANTINE,
)


def describe_tables() -> Iterator[str]:
    """Return the Markdown lines for `docs/TABLES.md`, the reference of all tables."""
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
