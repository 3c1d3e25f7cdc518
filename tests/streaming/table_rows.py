"""The rows of group updates as lists, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streaming.delta import rows
from streaming.delta.cells import Row
from streaming.delta.tables import Table
from streaming.evaluation.group_update import GroupUpdate
from streaming.evaluation.rebalances.failed_rebalances import SkipDecisions


def update_rows(cluster: str, updates: Sequence[GroupUpdate], decisions: SkipDecisions) -> Mapping[Table, list[Row]]:
    """Return the rows that a batch of group updates adds to the tables."""
    return {table: list(of_table) for table, of_table in rows.update_rows(cluster, updates, decisions).items()}
