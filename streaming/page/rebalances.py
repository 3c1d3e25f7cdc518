"""A group's last rebalances in sentences, from the table `rebalances`: what was written is what is told.

1. The group's state says on which days they were, so no other day's files are read, however old the table is.
2. What was read is kept for `KEPT_SECONDS`: the tables are written some moments after the registry, and how long nobody
   committed is known later still.
3. A table that cannot be read is said so; the page is shown without it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone

from deltalake.exceptions import DeltaError

from streaming.delta.stored import NoTableError, stored_rows
from streaming.delta.tables import COMMIT_GAPS, REBALANCES, Table
from streaming.errors import RemedyError
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.rebalances.rebalance_summary import RebalanceSummary
from streaming.evaluation.rebalances.rebalance_words import (
    Row,
    describe_rebalance,
    with_commit_gaps,
    without_upgrade_tombstones,
)
from streaming.page.last_rebalances import LastRebalances, RebalanceLine

MAX_REBALANCES = 20
KEPT_SECONDS = 10.0
KEPT_GROUPS = 64


@dataclass(frozen=True, slots=True)
class _Kept:
    read_at_seconds: float
    found: LastRebalances


class RebalanceReader:
    """Reads the tables below `root`. `monotonic_seconds` is a clock that never goes back."""

    def __init__(self, root: str, cluster: str, monotonic_seconds: Callable[[], float]) -> None:
        self._root = root
        self._cluster = cluster
        self._monotonic_seconds = monotonic_seconds
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def last(self, record: GroupState | None) -> LastRebalances:
        """Tell a group's last rebalances; a group without a record has none."""
        if record is None:
            return LastRebalances()
        recent, group_id = record.rebalance_history.recent[-MAX_REBALANCES:], record.snapshot.group_id
        if not recent:
            return LastRebalances()
        with self._lock:
            kept = self._kept.get(group_id)
        now_seconds = self._monotonic_seconds()
        if kept is not None and now_seconds - kept.read_at_seconds < KEPT_SECONDS:
            return kept.found
        found = self._read(group_id, recent)
        with self._lock:
            self._kept[group_id] = _Kept(now_seconds, found)
            self._kept.move_to_end(group_id)
            while len(self._kept) > KEPT_GROUPS:
                self._kept.popitem(last=False)
        return found

    def _read(self, group_id: str, recent: tuple[RebalanceSummary, ...]) -> LastRebalances:
        dates = {datetime.fromtimestamp(one.timestamp_ms / 1000, timezone.utc).date() for one in recent}
        try:
            rows = self._rows(REBALANCES, dates, group_id)
            gaps = self._gaps(dates, group_id)
        except (RemedyError, DeltaError, OSError, ValueError) as error:
            return LastRebalances(why_not=f"the table rebalances cannot be read ({type(error).__name__})")
        reported = [
            _reported(row) for row in without_upgrade_tombstones(with_commit_gaps(rows, gaps))[-MAX_REBALANCES:]
        ]
        return LastRebalances(tuple(reversed(reported)))

    def _rows(self, table: Table, dates: Collection[date], group_id: str) -> Sequence[Row]:
        return stored_rows(self._root, table, dates, group_id=group_id, cluster=self._cluster)

    def _gaps(self, dates: Collection[date], group_id: str) -> Sequence[Row]:
        """Rows of `commit_gaps`; none where an older monitor's tables have no such table."""
        try:
            return self._rows(COMMIT_GAPS, dates, group_id)
        except NoTableError:
            return ()


def _reported(row: Row) -> RebalanceLine:
    return RebalanceLine(
        int(row["record_time"].timestamp() * 1000), row["generation_id"], row["kind"], describe_rebalance(row)
    )
