"""Read the commit gaps of a group from the tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def read_commit_gaps(group: str, root: str, cluster: str | None) -> Sequence[dict[str, Any]]:
    """Return the group's rows of `commit_gaps`. The result is empty if the table does not exist."""
    from streaming.delta.stored import stored_rows  # noqa: PLC0415 - slow to import
    from streaming.delta.stored_table import NoTableError  # noqa: PLC0415 - slow to import
    from streaming.delta.tables import COMMIT_GAPS  # noqa: PLC0415 - as above

    try:
        return stored_rows(root, COMMIT_GAPS, group_id=group, cluster=cluster)
    except NoTableError:
        return []  # an older monitor, which had no such table, wrote the tables
