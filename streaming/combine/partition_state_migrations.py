"""Convert the stored state of a `__consumer_offsets` partition from an older version to the next version.

`group/codec.py` calls the functions.

In version 2, open gaps contain the committed offsets that rule 9 of `gaps` needs. The step to version 3 needs no
function here (`PARTITION_CODEC`).
"""

from __future__ import annotations

from typing import Any

import msgspec

_NO_COMMITTED_OFFSET = -1
"""Fills a field that must be a number. No function reads this number, because `is_recommitted_known` is False."""


def from_version_1(encoded: bytes) -> bytes:
    """Add the fields of version 2. For each open gap, the number of recommitted records becomes unknown."""
    snapshot = msgspec.msgpack.decode(encoded)
    gaps = snapshot["gaps"]
    gaps["open"] = {group: _unknown_recommitted(gap) for group, gap in gaps["open"].items()}
    return msgspec.msgpack.encode(snapshot)


def _unknown_recommitted(gap: dict[str, Any]) -> dict[str, Any]:
    return {
        **gap,
        "before": gap["before"] and _last_commit(gap["before"]),
        "pending": {key: _last_commit(commit) for key, commit in gap["pending"].items()},
        "is_recommitted_known": False,
    }


def _last_commit(commit: list[int]) -> list[int]:
    """Return the three fields of `LastCommit`. Some development versions of the state already contain all three."""
    offset, timestamp_ms, *_ = commit
    return [offset, timestamp_ms, _NO_COMMITTED_OFFSET]
