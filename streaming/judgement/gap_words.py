"""How long nobody committed at a rebalance, in words.

Names of topics are as Kafka has them: whoever prints them makes them safe first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streaming.combine import gaps

_NOBODY_COMMITTED = {
    gaps.NEXT_REBALANCE: "nobody committed before the next rebalance",
    gaps.ROUND_PASSED: "nobody committed for a whole round (judgement.round_seconds)",
    gaps.GROUP_DELETED: "nobody committed before the group was deleted",
}


def with_gaps(rows: Sequence[dict[str, Any]], of_gaps: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of `rebalances`, each with its row of `commit_gaps` as `commit_gap`; None where there is none (yet).

    >>> rebalance = {"cluster": "prod", "kafka_partition": 3, "kafka_offset": 17}
    >>> with_gaps([rebalance], [{**rebalance, "commit_gap_ms": 12_000}])[0]["commit_gap"]["commit_gap_ms"]
    12000
    """
    by_position = {_position(gap): gap for gap in of_gaps}
    return [{**row, "commit_gap": by_position.get(_position(row))} for row in rows]


def _position(row: Mapping[str, Any]) -> tuple[str, int, int]:
    return row["cluster"], row["kafka_partition"], row["kafka_offset"]


def gap_words(gap: Mapping[str, Any] | None) -> Iterator[str]:
    """What a row of `commit_gaps` says, in none, one or two phrases."""
    if gap is None:
        return
    gap_ms, usual_ms, worst_ms = gap["commit_gap_ms"], gap["usual_interval_ms"], gap["worst_gap_ms"]
    if gap_ms is not None:
        usually = "" if usual_ms is None else f", usually every {_seconds(usual_ms)}"
        yield f"nobody committed for {_seconds(gap_ms)}{usually}"
        if worst_ms is not None and worst_ms > gap_ms:
            yield f"{gap['worst_topic']}-{gap['worst_partition']} was not committed for {_seconds(worst_ms)}"
    elif gap["unknown_reason"] == gaps.NO_COMMIT_AFTER:
        yield _NOBODY_COMMITTED.get(gap["closed_by"], "nobody committed again")
    elif gap["unknown_reason"] != gaps.NO_COMMIT_BEFORE:
        yield f"how long nobody committed is unknown: {gap['unknown_reason'].replace('_', ' ')}"


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.1f} s"
