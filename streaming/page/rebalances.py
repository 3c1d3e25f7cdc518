"""A group's last rebalances in sentences, from `rebalances` and `commit_gaps`: what was written is what is told.

1. The group's state says on which days they were, so no other day's files are read, however old the table is.
2. What was read is kept until the group has another rebalance, `KEPT_SECONDS` at most: how long nobody committed is
   written when it is over. The table is written some moments after the registry, so until its last row is there it is
   read again, but not more than once in `READ_AGAIN_SECONDS`.
3. A table that cannot be read is said so; the page is shown without it. Without `commit_gaps`, which an older monitor
   did not write, gaps are left out.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

from deltalake.exceptions import DeltaError

from streaming.errors import RemedyError
from streaming.judgement.brief import RebalanceInBrief
from streaming.judgement.gap_words import with_gaps
from streaming.judgement.rebalance_words import Row, sentence, without_upgrades_ends
from streaming.judgement.turn import GroupRecord
from streaming.sinks.stored import NoTableError, stored_rows
from streaming.sinks.tables import COMMIT_GAPS, REBALANCES

MOST_TOLD = 20
READ_AGAIN_SECONDS = 5.0
KEPT_SECONDS = 60.0
KEPT_GROUPS = 64


@dataclass(frozen=True, slots=True)
class Told:
    """One rebalance, or what else happened to a group's membership, in words. Names in it are as members gave them."""

    timestamp_ms: int
    generation_id: int | None
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class LastRebalances:
    """The last of them, the newest first; `why_not` says why they could not be read."""

    told: tuple[Told, ...] = ()
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class _Kept:
    newest_ms: int
    is_whole: bool
    read_at_seconds: float
    found: LastRebalances

    def holds_at(self, now_seconds: float) -> bool:
        return now_seconds - self.read_at_seconds < (KEPT_SECONDS if self.is_whole else READ_AGAIN_SECONDS)


class RebalanceReader:
    """Reads the tables below `root`. `monotonic_seconds` is a clock that never goes back."""

    def __init__(self, root: str, cluster: str, monotonic_seconds: Callable[[], float]) -> None:
        self._root = root
        self._cluster = cluster
        self._monotonic_seconds = monotonic_seconds
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def last(self, record: GroupRecord) -> LastRebalances:
        """Tell a group's last rebalances."""
        recent, group_id = record.story.recent[-MOST_TOLD:], record.snapshot.group_id
        if not recent:
            return LastRebalances()
        with self._lock:
            kept = self._kept.get(group_id)
        newest_ms, now_seconds = recent[-1].timestamp_ms, self._monotonic_seconds()
        if kept is not None and kept.newest_ms == newest_ms and kept.holds_at(now_seconds):
            return kept.found
        found = self._read(group_id, recent)
        is_whole = bool(found.told) and found.told[0].timestamp_ms >= newest_ms
        with self._lock:
            self._kept[group_id] = _Kept(newest_ms, is_whole, now_seconds, found)
            self._kept.move_to_end(group_id)
            while len(self._kept) > KEPT_GROUPS:
                self._kept.popitem(last=False)
        return found

    def _read(self, group_id: str, recent: tuple[RebalanceInBrief, ...]) -> LastRebalances:
        dates = {datetime.fromtimestamp(one.timestamp_ms / 1000, timezone.utc).date() for one in recent}
        try:
            rows = stored_rows(self._root, REBALANCES, dates, group_id=group_id, cluster=self._cluster)
            rows = with_gaps(rows, self._gaps(group_id, dates))
        except (RemedyError, DeltaError, OSError, ValueError) as error:
            return LastRebalances(why_not=f"the table rebalances cannot be read ({type(error).__name__})")
        told = [_told(row) for row in without_upgrades_ends(rows)[-MOST_TOLD:]]
        return LastRebalances(tuple(reversed(told)))

    def _gaps(self, group_id: str, dates: Collection[date]) -> Sequence[dict[str, Any]]:
        try:
            return stored_rows(self._root, COMMIT_GAPS, dates, group_id=group_id, cluster=self._cluster)
        except NoTableError:
            return ()


def _told(row: Row) -> Told:
    return Told(int(row["record_time"].timestamp() * 1000), row["generation_id"], row["kind"], sentence(row))
