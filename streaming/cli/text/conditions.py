"""Describe the rows of the table `group_conditions` in sentences, for the commands."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from streaming.cli.text.terminal import escape_text
from streaming.evaluation.phrases import in_words

Row = Mapping[str, Any]
"""One table row: a map of column names to values."""


def change_sentence(row: Row) -> str:
    """Describe the start or end of a condition.

    >>> row = {"condition": "flapping_member", "active": True, "detail": "member pod-3 left or rejoined 4 times"}
    >>> change_sentence(row)
    'flapping member: member pod-3 left or rejoined 4 times'
    """
    name, detail = condition_title(row), escape_text(row["detail"])
    if row["active"]:
        return f"{name}: {detail}"
    lasted = in_words((row["sampled_time"] - row["since_time"]) / timedelta(milliseconds=1))
    return f"{name} ended after {lasted}: {detail}"


def change_time(row: Row) -> datetime:
    """Return the time of the start or end.

    While the monitor catches up, it samples a start long after the start. So the result for a start is `since_time`.
    """
    time: datetime = row["since_time"] if row["active"] else row["sampled_time"]
    return time


def active_sentence(row: Row) -> str:
    """Describe an active condition with its start time.

    The last row can be a day old, so the sentence also contains the time of this row.

    >>> row = {"condition": "rebalance_storm", "since_time": datetime(2026, 11, 21, 14, 3), "detail": "9 rebalances"}
    >>> active_sentence({**row, "sampled_time": datetime(2026, 11, 22, 0, 0, 7)})
    'since 2026-11-21 14:03:00 rebalance storm: 9 rebalances (as of 2026-11-22 00:00:07)'
    """
    as_of = _to_second(row["sampled_time"])
    return f"since {format_since(row)} {condition_title(row)}: {escape_text(row['detail'])} (as of {as_of})"


def condition_title(row: Row) -> str:
    """Return the name of the condition with spaces instead of underscores."""
    name: str = row["condition"]
    return escape_text(name.replace("_", " "))


def format_since(row: Row) -> str:
    """Return the start time of the condition in UTC, to the second."""
    return _to_second(row["since_time"])


def _to_second(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")
