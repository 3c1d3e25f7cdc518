"""Defines the schema of every Delta table. `tests/table_reference.py` generates `docs/TABLES.md` from the schemas.

All tables are partitioned by cluster and date. If a row describes a record, its key is the position of the record
(cluster, offsets_topic_partition, offsets_topic_offset). If a row describes a sample, its key contains the time of the
sample. A row of `assignment_imbalance` describes a record and a sample, so its key contains both. The package imports
no other package.
"""

from __future__ import annotations

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
