"""Reads the last rebalances of a group from the tables and describes them in sentences.

1. The state of the group contains the dates of the last rebalances. The reader reads only the table files of these
   dates.
2. The reader caches the result only for `CACHE_SECONDS`, because the result can be incomplete. The monitor updates its
   state before it writes its tables, so the row of a new rebalance can be missing for a short time. The commit gap of a
   rebalance becomes known only when the gap ends.
3. If the reader cannot read a table, the page shows the reason instead of the rebalances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from deltalake.exceptions import DeltaError

from streaming.delta.cells import utc
from streaming.delta.stored import stored_rows
from streaming.delta.stored_table import NoTableError
from streaming.delta.tables import COMMIT_GAPS, REBALANCES
from streaming.errors import RemedyError
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.rebalances.rebalance_summary import RebalanceSummary
from streaming.evaluation.rebalances.rebalance_words import Row, with_commit_gaps, without_upgrade_tombstones
from streaming.page.last_rebalances import LastRebalances
from streaming.page.rebalance_rows import rebalances_of
from streaming.page.recent_answers import RecentAnswers

MAX_REBALANCES = 20
CACHE_SECONDS = 10.0


class RebalanceReader:
    """Reads the tables in the folder `root`. `monotonic_seconds` is a clock that never goes backwards."""

    def __init__(self, root: str, cluster: str, monotonic_seconds: Callable[[], float]) -> None:
        self.root = root
        self._cluster = cluster
        self.monotonic_seconds = monotonic_seconds
        self._recent = RecentAnswers[str, LastRebalances](monotonic_seconds)

    def last(self, record: GroupState | None) -> LastRebalances:
        """Return the last rebalances of a group. The result is empty if `record` is None."""
        if record is None or not record.rebalance_history.recent:
            return LastRebalances()
        recent, group_id = record.rebalance_history.recent[-MAX_REBALANCES:], record.snapshot.group_id
        return self._recent.get(group_id, CACHE_SECONDS, lambda: self._read(group_id, recent))

    def _read(self, group_id: str, recent: tuple[RebalanceSummary, ...]) -> LastRebalances:
        dates = {utc(one.timestamp_ms).date() for one in recent}
        try:
            rows = stored_rows(self.root, REBALANCES, dates, group_id=group_id, cluster=self._cluster)
            gaps: Sequence[Row] = ()
            with suppress(NoTableError):
                gaps = stored_rows(self.root, COMMIT_GAPS, dates, group_id=group_id, cluster=self._cluster)
        except (RemedyError, DeltaError, OSError, ValueError) as error:
            return LastRebalances(error=f"the table rebalances cannot be read ({type(error).__name__})")
        shown = without_upgrade_tombstones(with_commit_gaps(rows, gaps))[-MAX_REBALANCES:]
        return LastRebalances(tuple(rebalances_of(shown[::-1])))
