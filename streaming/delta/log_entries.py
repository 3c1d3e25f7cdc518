"""Checks that one entry of a Delta log is complete.

delta-rs reads each line of an entry separately. If the last lines of an entry are missing, delta-rs applies the other
lines without an error.

1. Each line is one action: a JSON object whose values are JSON objects. An entry without actions is damaged. The
   statistics of an added file are a text, and this text is also JSON.
2. The first entry of a table contains the actions `protocol` and `metaData`.
3. delta-rs writes the number of added files and the number of removed files into `commitInfo`. If the number of `add`
   or `remove` actions is lower, the entry is damaged.
4. delta-rs does not count transaction identifiers. So the monitor writes the number of identifiers into `commitInfo`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

TRANSACTIONS = "rebalance_monitor.transactions"
"""The field of `commitInfo` that contains the number of transaction identifiers (rule 4)."""

_COUNTS = (
    ("add", "num_added_files"),
    ("add", "numFilesAdded"),
    ("remove", "num_removed_files"),
    ("remove", "numFilesRemoved"),
)
"""Each action, and a field of `commitInfo` with the number of these actions. Compactions use different fields."""

_Action = Mapping[str, Mapping[str, Any]]


def entry_fault(stored: bytes | None, version: int) -> str | None:
    """Return a description of the damage in a log entry. Return None if the log entry is complete.

    >>> entry_fault(b'{"add":5}', 7)
    'contains no actions'
    """
    if not stored:
        return "is missing" if stored is None else "is empty"
    try:
        actions = [json.loads(line) for line in stored.splitlines() if line.strip()]
        if not actions or not all(_is_action(action) for action in actions):
            return "contains no actions"
        for action in actions:
            json.loads(action.get("add", {}).get("stats") or "{}")
    except (RecursionError, TypeError, ValueError):
        return "is not JSON"
    return None if _is_complete(actions, version) else "is cut off"


def _is_action(parsed: object) -> bool:
    return isinstance(parsed, dict) and bool(parsed) and all(isinstance(content, dict) for content in parsed.values())


def _is_complete(actions: Sequence[_Action], version: int) -> bool:
    number = Counter(name for action in actions for name in action)
    if version == 0 and not (number["protocol"] and number["metaData"]):
        return False
    commit: Mapping[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
    if number["txn"] < _whole_number(commit.get(TRANSACTIONS)):
        return False
    counted = commit.get("operationMetrics")
    if not isinstance(counted, dict) or not str(commit.get("engineInfo")).startswith("delta-rs"):
        return True  # a different program wrote the entry, and counts differently
    return all(number[action] >= _whole_number(counted.get(name)) for action, name in _COUNTS)


def _whole_number(stored: object) -> int:
    """Return the stored number, or 0 if the value is not a number. delta-rs stores the number TRANSACTIONS as text."""
    text = str(stored)
    return int(text) if text.isascii() and text.isdigit() else 0
