"""Which record a group reads next, where no record stands at the offset that it committed.

A consumer that commits the offset after its last record stands before the marker that ends its transaction: offsets
follow, records do not. On a compacted topic the last records may be gone. And while a transaction is open, a consumer
under read_committed receives nothing at or after the last stable offset. In all three cases the group has read what it
may, and the difference between two offsets says otherwise. Rules:

1. A partition is looked at only where that can matter: its commit lies before the end, by LOOK_WITHIN offsets at most,
   and it was the same at an earlier sample, or its status was WARN by lags that markers alone may make.
2. A look reads the log from the commit on, once. No record up to the end: the group has read everything, lag 0. A
   record: lag counts from there. What was found is kept for the commit, and looked at again from where it ended.
   Records of aborted transactions alone are nothing to a consumer under read_committed, and records to the others: what
   this one does is unknown, so lag and status are, as in rule 4.
3. A commit before the last stable offset of an open transaction, with no record between: `is_blocked`. Its lag stays
   as measured up to the high watermark; it is neither STOP nor silent. A commit beyond the last stable offset is one of
   a reader that does not wait for transactions, and is not blocked.
4. Where a look is due and was not possible (the monitor lacks READ on the topic, the partition has no leader, other
   looks went first), FEW_OFFSETS or less may all be markers: no `is_record`, so a bad status is unknown. After
   DOUBTED_AFTER_MS at one commit the lag is unknown, too. More offsets than that count as records.
5. LOOKS_PER_SAMPLE bounds the looks of a sample, the nearest to the end first. Topics that refused READ are asked again
   after REFUSED_FOR_MS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.wire import BoolArray, Int64Array
from streaming.evaluation.lag.lag import MAYBE_ONLY_MARKERS, LagReport, TopicPartition
from streaming.protocol.record_batches import Tail

LOOK_WITHIN = 1_000
FEW_OFFSETS = 10
"""A transaction ends in one marker; several in a row are left by aborted ones whose records are gone."""

DOUBTED_AFTER_MS = 30_000
REFUSED_FOR_MS = 300_000
LOOKS_PER_SAMPLE = 100


class Look(NamedTuple):
    """One read of the log at an offset, for a group's commit."""

    topic: str
    partition: int
    committed_offset: int
    from_offset: int


class NotSeen(Enum):
    """Why a look showed nothing."""

    REFUSED = "refused"
    FAILED = "failed"


Seen = Tail | NotSeen
_Commit = tuple[str, int, int]


class UnmovedCommits:
    """Since when each commit is at the offset where it is; the caller numbers the rows.

    >>> unmoved = UnmovedCommits()
    >>> row = np.array([3])
    >>> [unmoved.for_ms(row, np.array([offset]), at_ms).tolist() for offset, at_ms in [(7, 0), (7, 5000), (8, 9000)]]
    [[0], [5000], [0]]
    """

    def __init__(self) -> None:
        self._offsets: Int64Array = np.empty(0, dtype=np.int64)
        self._since_ms: Int64Array = np.empty(0, dtype=np.int64)

    def for_ms(self, rows: Int64Array, committed_offsets: Int64Array, at_ms: int) -> Int64Array:
        """How long each row's commit is known to be where it is; a clock that was set back starts anew."""
        missing = int(rows.max(initial=-1)) + 1 - len(self._offsets)
        if missing > 0:
            blank = np.full(max(missing, len(self._offsets)), -1, dtype=np.int64)
            self._offsets = np.concatenate([self._offsets, blank])
            self._since_ms = np.concatenate([self._since_ms, blank])
        is_new = (self._offsets[rows] != committed_offsets) | (self._since_ms[rows] > at_ms)
        self._offsets[rows[is_new]] = committed_offsets[is_new]
        self._since_ms[rows[is_new]] = at_ms
        unmoved: Int64Array = at_ms - self._since_ms[rows]
        return unmoved


class NearRow(NamedTuple):
    """A row of a report that may have read everything: where it is, and where the log ends for its reader."""

    at: int
    commit: _Commit
    end: int
    log_start: int
    unmoved_ms: int
    is_open: bool
    """The end is the last stable offset: an open transaction begins there."""


def rows_behind(report: LagReport, unmoved_ms: Int64Array, is_suspect: BoolArray) -> Int64Array:
    """The rows whose commit lies before the end and does not move, or is suspected (rule 1)."""
    lag = report.partitions["lag"].fill_null(0).to_numpy()
    return np.flatnonzero((lag > 0) & ((unmoved_ms > 0) | is_suspect))


def topic_partitions(report: LagReport, at: Int64Array) -> list[TopicPartition]:
    """The topic partitions of some rows, sorted."""
    rows = report.partitions.select(["topic", "partition"]).take(pa.array(at))
    return sorted(set(zip(rows["topic"].to_pylist(), rows["partition"].to_pylist(), strict=True)))


def near_rows(
    report: LagReport, at: Int64Array, unmoved_ms: Int64Array, stable: Mapping[TopicPartition, int]
) -> list[NearRow]:
    """Those of some rows that are near the end, or near the last stable offset if they are not past it (rule 3)."""
    names = ["topic", "partition", "committed_offset", "end_offset", "log_start_offset"]
    table = report.partitions.select(names).take(pa.array(at))
    found = []
    rows = zip(at.tolist(), unmoved_ms[at].tolist(), *(column.to_pylist() for column in table.columns), strict=True)
    for row, unmoved, topic, partition, committed, end, start in rows:
        last_stable = stable.get((topic, partition), end)
        is_open = committed <= last_stable < end
        last = last_stable if is_open else end
        if last - committed <= LOOK_WITHIN:
            found.append(NearRow(row, (topic, partition, committed), last, start or 0, unmoved, is_open))
    return found


class NextOffsets:
    """What looks have shown so far. `looks`, then `take` their answers, then `apply`."""

    def __init__(self) -> None:
        self._known: dict[_Commit, Tail] = {}
        self._refused_at_ms: dict[str, int] = {}

    def looks(self, rows: Sequence[NearRow], now_ms: int) -> list[Look]:
        """The looks that are due, the nearest to the end first (rules 1, 2, 5). Forgets what is known of other rows."""
        self._known = {row.commit: self._known[row.commit] for row in rows if row.commit in self._known}
        due = {(row.end - look.from_offset, look) for row in rows if (look := self._due(row, now_ms)) is not None}
        return [look for _, look in sorted(due)[:LOOKS_PER_SAMPLE]]

    def _due(self, row: NearRow, now_ms: int) -> Look | None:
        known = self._of(row)
        if known.is_record or not row.log_start <= known.read_to < row.end:
            return None
        refused_at_ms = self._refused_at_ms.get(row.commit[0])
        if refused_at_ms is not None and 0 <= now_ms - refused_at_ms < REFUSED_FOR_MS:
            return None
        return Look(*row.commit, known.read_to)

    def _of(self, row: NearRow) -> Tail:
        return self._known.get(row.commit) or Tail(row.commit[2], is_record=False, read_to=row.commit[2])

    def take(self, seen: Mapping[Look, Seen], now_ms: int) -> None:
        """Take in what looks have shown."""
        for look, found in seen.items():
            if isinstance(found, Tail):
                commit = look.topic, look.partition, look.committed_offset
                before = self._known.get(commit)
                has_skipped = before is not None and before.next_offset < before.read_to
                next_offset = before.next_offset if before is not None and has_skipped else found.next_offset
                self._known[commit] = Tail(next_offset, found.is_record, found.read_to)
                self._refused_at_ms.pop(look.topic, None)
            elif found is NotSeen.REFUSED:
                self._refused_at_ms[look.topic] = now_ms

    def apply(self, report: LagReport, rows: Sequence[NearRow]) -> LagReport:
        """The report with lag counted from the next record (rules 2 to 4)."""
        table = report.partitions
        ends = table["end_offset"].fill_null(0).to_numpy()
        next_offsets = table["committed_offset"].to_numpy().copy()
        is_record, is_aborted, is_blocked, is_doubted = np.zeros((4, table.num_rows), dtype=np.bool_)
        for row in rows:
            known = self._of(row)
            next_offset = next_offsets[row.at] = min(max(known.next_offset, row.commit[2]), row.end)
            has_read_all = next_offset >= row.end
            is_record[row.at] = known.is_record
            is_blocked[row.at] = has_read_all and row.is_open
            is_aborted[row.at] = not has_read_all and not known.is_record and known.read_to >= row.end
            is_doubtful = is_aborted[row.at] or 0 < row.end - next_offset <= FEW_OFFSETS
            is_doubted[row.at] = is_doubtful and not known.is_record and row.unmoved_ms >= DOUBTED_AFTER_MS
        was_unknown = pc.is_null(table["lag"]).to_numpy()
        changed = {
            "lag": pa.array(np.where(was_unknown, 0, ends - next_offsets), mask=was_unknown | is_doubted),
            "unknown_reason": pc.if_else(pa.array(is_doubted), MAYBE_ONLY_MARKERS, table["unknown_reason"]),
            "next_offset": pa.array(next_offsets),
            "is_record": pa.array(is_record),
            "is_aborted": pa.array(is_aborted),
            "is_blocked": pa.array(is_blocked),
        }
        columns = [changed.get(name, table[name]) for name in table.column_names]
        return LagReport(report.sampled_at_ms, pa.table(columns, schema=table.schema))
