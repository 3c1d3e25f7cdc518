"""What the table `group_conditions` tells of groups, in sentences: for the commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from streaming.cli.text.shown import shown
from streaming.evaluation.phrases import in_words

Row = Mapping[str, Any]
"""A row of a table."""


def condition_changes(root: str, cluster: str | None, group_id: str) -> Sequence[Row]:
    """A group's conditions as they began and ended. Nothing where there is no such table: an older monitor had none."""
    from streaming.delta.stored import NoTableError, stored_rows  # noqa: PLC0415 - slow to import; --help need not wait
    from streaming.delta.tables import GROUP_CONDITIONS  # noqa: PLC0415 - as above

    try:
        return stored_rows(root, GROUP_CONDITIONS, group_id=group_id, cluster=cluster)
    except NoTableError:
        return ()


def active_rows(root: str, cluster: str | None, group_id: str) -> Sequence[Row]:
    """A group's conditions that began and have not ended; nothing where there is no such table."""
    from streaming.delta.stored import NoTableError, active_conditions  # noqa: PLC0415 - as above

    try:
        return active_conditions(root, cluster, group_id)
    except NoTableError:
        return ()


def change_sentence(row: Row) -> str:
    """A condition's beginning or end in words.

    >>> row = {"condition": "flapping_member", "active": True, "detail": "member pod-3 joined and left 4 times"}
    >>> change_sentence(row)
    'flapping member: member pod-3 joined and left 4 times'
    """
    name, detail = condition_shown(row), shown(row["detail"])
    if row["active"]:
        return f"{name}: {detail}"
    lasted = in_words((row["sampled_time"] - row["since_time"]) / timedelta(milliseconds=1))
    return f"no {name} any more, after {lasted}; it was: {detail}"


def active_sentence(row: Row) -> str:
    """A condition that holds in words, with its time.

    >>> since = datetime(2026, 11, 21, 14, 3)
    >>> active_sentence({"condition": "rebalance_storm", "since_time": since, "detail": "9 rebalances"})
    'since 2026-11-21 14:03:00 rebalance storm: 9 rebalances'
    """
    return f"since {since_shown(row)} {condition_shown(row)}: {shown(row['detail'])}"


def condition_shown(row: Row) -> str:
    """The condition's name as a person writes it."""
    name: str = row["condition"]
    return shown(name.replace("_", " "))


def since_shown(row: Row) -> str:
    """The time since when, in UTC, to the second."""
    since: datetime = row["since_time"]
    return since.strftime("%Y-%m-%d %H:%M:%S")
