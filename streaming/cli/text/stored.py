"""Read a group's rows from tables that an earlier version of the monitor did not have.

If a table does not exist, the result is empty. The imports of this module are slow, so a command imports this module
only when it runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from streaming.cli.text.conditions import Row
from streaming.delta.stored import active_conditions, stored_rows
from streaming.delta.stored_table import NoTableError
from streaming.delta.tables import ASSIGNMENT_IMBALANCE, COMMIT_GAPS, GROUP_CONDITIONS, Table
from streaming.evaluation.fairness.imbalance import PARTITIONS
from streaming.evaluation.fairness.participants import MEMBER


def read_commit_gaps(root: str, cluster: str | None, group_id: str) -> Sequence[Row]:
    """Return the commit gaps of a group."""
    return _rows_if_any(root, COMMIT_GAPS, group_id=group_id, cluster=cluster)


def read_condition_changes(root: str, cluster: str | None, group_id: str) -> Sequence[Row]:
    """Return the rows about the starts and the ends of a group's conditions."""
    rows = _rows_if_any(root, GROUP_CONDITIONS, group_id=group_id, cluster=cluster)
    return [row for row in rows if not row.get("is_repeated")]


def read_active_conditions(root: str, cluster: str | None, group_id: str) -> Sequence[Row]:
    """Return the last row of each active condition of a group."""
    try:
        return active_conditions(root, cluster, group_id)
    except NoTableError:
        return ()


def read_imbalances(root: str, cluster: str | None, group_id: str) -> Sequence[Row]:
    """Return the distribution of partitions among members for each assignment of a group."""
    return _rows_if_any(
        root, ASSIGNMENT_IMBALANCE, group_id=group_id, cluster=cluster, measure=PARTITIONS, scope=MEMBER
    )


def _rows_if_any(root: str, table: Table, **equal: str | None) -> Sequence[Row]:
    try:
        return stored_rows(root, table, None, **equal)
    except NoTableError:
        return ()
