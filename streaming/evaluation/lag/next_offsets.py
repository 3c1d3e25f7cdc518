"""Find the record that a group reads next, if there is no record at its committed offset.

Lag is a difference of two offsets. In three cases, this difference is too high. First: a consumer commits the offset
after its last record. A transaction marker can have this offset. A marker ends a transaction, and it is not a record.
Second: in a compacted topic, compaction may have removed the last records. Third: while a transaction is open, a
read_committed consumer receives nothing at or after the last stable offset. In all three cases, the group may have read
every record that it can read. Rules:

1. The monitor fetches from a partition only if the fetch can change the lag. Two conditions must be true. First, at
   least one offset and at most FETCH_WITHIN offsets are unread. Second, the committed offset has not changed since an
   earlier sample, or the row is suspect (`is_suspect` in `status.py`). At the first sample after a start, no earlier
   sample is known. Then a commit that is older than DOUBTED_AFTER_MS counts as unchanged since its time. Otherwise, a
   marker at the end of a quiet partition would look like a record that waits for days.
2. A fetch reads the log from the committed offset. If there is no record before the end, the group has read everything
   and its lag is 0. If there is a record, lag is counted from this record. The monitor stores the result for this
   commit. The next fetch starts where this fetch ended. A read_committed consumer ignores records of aborted
   transactions. A read_uncommitted consumer reads these records. So if the fetch finds only records of aborted
   transactions, lag and status are unknown, as in rule 4.
3. A row is blocked (`is_blocked`) if two conditions are true. The first condition is that an open transaction begins at
   the last stable offset. The second condition is that there is no record between the committed offset and the last
   stable offset. The lag of a blocked row is still counted up to the high watermark. A blocked row never has the status
   STOP and never counts as silent. If the committed offset is after the last stable offset, the consumer does not wait
   for transactions. So this row is not blocked.
4. Sometimes the monitor cannot make a necessary fetch. For example, the monitor has no READ permission on the topic,
   the partition has no leader, or the limit of rule 5 is reached. Without the fetch, up to FEW_OFFSETS unread offsets
   may all be markers. So `is_record` is False, and a bad status becomes unknown. If the committed offset does not
   change for DOUBTED_AFTER_MS, the lag becomes unknown, too. If more than FEW_OFFSETS offsets are unread, all of them
   count as records.
5. The monitor makes at most FETCHES_PER_SAMPLE fetches per sample. It starts with the commits that are nearest to the
   end. If a broker refuses READ on a topic, the monitor tries again after REFUSED_FOR_MS.
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

FETCH_WITHIN = 1_000
FEW_OFFSETS = 10
"""If a partition has at most this number of unread offsets, all of them may be markers.

A transaction ends with one marker per partition. Several markers follow each other directly only if compaction removed
the records between them.
"""

DOUBTED_AFTER_MS = 30_000
REFUSED_FOR_MS = 300_000
FETCHES_PER_SAMPLE = 100


class TailFetch(NamedTuple):
    """A fetch for one commit of a group. The fetch reads the log, starting at `from_offset`."""

    topic: str
    partition: int
    committed_offset: int
    from_offset: int


class FetchFailure(Enum):
    """The reason why a fetch returned no result."""

    REFUSED = "refused"
    FAILED = "failed"


FetchResult = Tail | FetchFailure
_Commit = tuple[str, int, int]


class UnmovedCommits:
    """Stores the time of the last change of each row's committed offset. The caller assigns the row numbers.

    >>> unmoved = UnmovedCommits()
    >>> row = np.array([3])
    >>> [unmoved.for_ms(row, np.array([offset]), at_ms).tolist() for offset, at_ms in [(7, 0), (7, 5000), (8, 9000)]]
    [[0], [5000], [0]]
    """

    def __init__(self) -> None:
        self._offsets: Int64Array = np.empty(0, dtype=np.int64)
        self._since_ms: Int64Array = np.empty(0, dtype=np.int64)

    def for_ms(
        self, rows: Int64Array, committed_offsets: Int64Array, at_ms: int, commit_times_ms: Int64Array | None = None
    ) -> Int64Array:
        """Return the time in milliseconds since each row's committed offset last changed.

        If the clock was set back, the time restarts at 0. For a row that was not seen before, the time of an old commit
        counts (rule 1).
        """
        missing = int(rows.max(initial=-1)) + 1 - len(self._offsets)
        if missing > 0:
            blank = np.full(max(missing, len(self._offsets)), -1, dtype=np.int64)
            self._offsets = np.concatenate([self._offsets, blank])
            self._since_ms = np.concatenate([self._since_ms, blank])
        is_new = (self._offsets[rows] != committed_offsets) | (self._since_ms[rows] > at_ms)
        since_ms = np.full(len(rows), at_ms, dtype=np.int64)
        if commit_times_ms is not None:
            is_old = (self._offsets[rows] < 0) & (commit_times_ms <= at_ms - DOUBTED_AFTER_MS)
            since_ms[is_old] = commit_times_ms[is_old]
        self._offsets[rows[is_new]] = committed_offsets[is_new]
        self._since_ms[rows[is_new]] = since_ms[is_new]
        unmoved: Int64Array = at_ms - self._since_ms[rows]
        return unmoved


class RowNearEnd(NamedTuple):
    """A row of a lag report whose group may have read everything.

    `at` is the index of the row. `end` is the offset up to which the consumer of this row can read.
    """

    at: int
    commit: _Commit
    end: int
    log_start: int
    unmoved_ms: int
    is_open: bool
    """True if `end` is the last stable offset and an open transaction begins there."""


def rows_with_lag(report: LagReport, unmoved_ms: Int64Array, is_suspect: BoolArray) -> Int64Array:
    """Return the rows with a lag above 0 that meet the second condition of rule 1."""
    lag = report.partitions["lag"].fill_null(0).to_numpy()
    return np.flatnonzero((lag > 0) & ((unmoved_ms > 0) | is_suspect))


def topic_partitions(report: LagReport, at: Int64Array) -> list[TopicPartition]:
    """Return the topic partitions of the given rows, sorted."""
    rows = report.partitions.select(["topic", "partition"]).take(pa.array(at))
    return sorted(set(zip(rows["topic"].to_pylist(), rows["partition"].to_pylist(), strict=True)))


def rows_near_end(
    report: LagReport, at: Int64Array, unmoved_ms: Int64Array, stable: Mapping[TopicPartition, int]
) -> list[RowNearEnd]:
    """Return the given rows that are near the end. If rule 3 applies, the end is the last stable offset."""
    names = ["topic", "partition", "committed_offset", "end_offset", "log_start_offset"]
    table = report.partitions.select(names).take(pa.array(at))
    near = []
    rows = zip(at.tolist(), unmoved_ms[at].tolist(), *(column.to_pylist() for column in table.columns), strict=True)
    for row, unmoved, topic, partition, committed, end, start in rows:
        last_stable = stable.get((topic, partition), end)
        is_open = committed <= last_stable < end
        last = last_stable if is_open else end
        if last - committed <= FETCH_WITHIN:
            near.append(RowNearEnd(row, (topic, partition, committed), last, start or 0, unmoved, is_open))
    return near


class NextOffsets:
    """Stores the results of all fetches.

    For each sample, call `due_fetches`, `add_results` and `apply`, in this order.
    """

    def __init__(self) -> None:
        self._known: dict[_Commit, Tail] = {}
        self._refused_at_ms: dict[str, int] = {}

    def due_fetches(self, rows: Sequence[RowNearEnd], now_ms: int) -> list[TailFetch]:
        """Return the necessary fetches (rules 1, 2, 5).

        The first fetch is for the commit that is nearest to the end. The stored results of rows that are not in `rows`
        are removed.
        """
        self._known = {row.commit: self._known[row.commit] for row in rows if row.commit in self._known}
        due = {
            (row.end - fetch.from_offset, fetch) for row in rows if (fetch := self._due_fetch(row, now_ms)) is not None
        }
        return [fetch for _, fetch in sorted(due)[:FETCHES_PER_SAMPLE]]

    def _due_fetch(self, row: RowNearEnd, now_ms: int) -> TailFetch | None:
        known = self._tail_of(row)
        if known.is_record or not row.log_start <= known.read_to < row.end:
            return None
        refused_at_ms = self._refused_at_ms.get(row.commit[0])
        if refused_at_ms is not None and 0 <= now_ms - refused_at_ms < REFUSED_FOR_MS:
            return None
        return TailFetch(*row.commit, known.read_to)

    def _tail_of(self, row: RowNearEnd) -> Tail:
        return self._known.get(row.commit) or Tail(row.commit[2], is_record=False, read_to=row.commit[2])

    def add_results(self, results: Mapping[TailFetch, FetchResult], now_ms: int) -> None:
        """Store the results of fetches."""
        for fetch, result in results.items():
            if isinstance(result, Tail):
                commit = fetch.topic, fetch.partition, fetch.committed_offset
                before = self._known.get(commit)
                has_skipped = before is not None and before.next_offset < before.read_to
                next_offset = before.next_offset if before is not None and has_skipped else result.next_offset
                self._known[commit] = Tail(next_offset, result.is_record, result.read_to)
                self._refused_at_ms.pop(fetch.topic, None)
            elif result is FetchFailure.REFUSED:
                self._refused_at_ms[fetch.topic] = now_ms

    def apply(self, report: LagReport, rows: Sequence[RowNearEnd]) -> LagReport:
        """Return a report in which lag is counted from the next record (rules 2 to 4)."""
        table = report.partitions
        ends = table["end_offset"].fill_null(0).to_numpy()
        next_offsets = table["committed_offset"].to_numpy().copy()
        is_record, is_aborted, is_blocked, is_doubted = np.zeros((4, table.num_rows), dtype=np.bool_)
        for row in rows:
            known = self._tail_of(row)
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
