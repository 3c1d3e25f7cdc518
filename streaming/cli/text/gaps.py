"""How long nobody committed at each rebalance, as the tables have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def gaps_of(group: str, root: str, cluster: str | None) -> Sequence[dict[str, Any]]:
    """The group's rows of `commit_gaps`; none where the tables have no such table."""
    from streaming.delta.stored import NoTableError, stored_rows  # noqa: PLC0415 - slow to import
    from streaming.delta.tables import COMMIT_GAPS  # noqa: PLC0415 - as above

    try:
        return stored_rows(root, COMMIT_GAPS, group_id=group, cluster=cluster)
    except NoTableError:
        return []  # the tables are of a monitor that did not tell gaps yet
