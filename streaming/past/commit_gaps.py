"""Selects the commit gaps that had ended at a past moment.

1. The table `commit_gaps` contains the length of a gap, but not the time at which the gap ended. The gap of a partition
   starts before the rebalance. So when the time since the rebalance is as long as the gap, the gap has ended.
2. A gap with an unknown length can end because of the next rebalance or the deletion of the group. Such a gap had ended
   at the moment only if the table `rebalances` contains a later change up to the moment. All other gaps with an unknown
   length count as ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from streaming.combine.gaps import GROUP_DELETED, NEXT_REBALANCE
from streaming.evaluation.rebalances.rebalances import STATIC_REJOIN
from streaming.past.rows import Row, position


def ended_gaps(gaps: Sequence[Row], rebalances: Sequence[Row], at: datetime) -> Sequence[Row]:
    """Return the rows of `commit_gaps` whose gap had ended. `rebalances` are the last rebalances, the newest first."""
    newest = next((position(row) for row in rebalances if row["kind"] != STATIC_REJOIN), None)
    return [gap for gap in gaps if _has_ended(gap, at, is_newest=position(gap) == newest)]


def _has_ended(gap: Row, at: datetime, *, is_newest: bool) -> bool:
    lengths_ms = [gap[name] for name in ("commit_gap_ms", "worst_gap_ms") if gap[name] is not None]
    if lengths_ms:
        until: datetime = gap["record_time"] + timedelta(milliseconds=max(lengths_ms))
        return until <= at
    return not is_newest or gap["closed_by"] not in {NEXT_REBALANCE, GROUP_DELETED}
