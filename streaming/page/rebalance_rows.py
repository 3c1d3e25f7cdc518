"""Converts rows of the table `rebalances` to the values that pages and the API show."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from streaming.delta.cells import timestamp_ms
from streaming.evaluation.rebalances.rebalance_words import Row, describe_rebalance
from streaming.evaluation.rebalances.rebalances import DELETED
from streaming.page.last_rebalances import DescribedRebalance


def rebalances_of(newest_first: Sequence[Row]) -> Sequence[DescribedRebalance]:
    """Describe each row in a sentence. The field `commit_gap` of a row is optional (`with_commit_gaps`)."""
    return [_rebalance(row, previous) for row, previous in pairwise([*newest_first, None]) if row is not None]


def _rebalance(row: Row, previous: Row | None) -> DescribedRebalance:
    if previous is not None and previous["kind"] == DELETED:
        previous = None
    return DescribedRebalance(
        timestamp_ms=timestamp_ms(row["record_time"]),
        generation_id=row["generation_id"],
        kind=row["kind"],
        text=describe_rebalance(row),
        previous_generation_id=previous["generation_id"] if previous else None,
        previous_timestamp_ms=timestamp_ms(previous["record_time"]) if previous else None,
        recommitted_records=(row.get("commit_gap") or {}).get("recommitted_records"),
    )
