"""Find the record that a group reads next, if there is no record at its committed offset.

Lag is a difference of two offsets. In three cases, the difference of offsets is too high. First: a consumer commits the
offset of its last record plus 1. A transaction marker can have this offset. A transaction marker ends a transaction,
and is not a record. Records of aborted transactions can follow the marker. Second: compaction or retention may have
removed unread records. Third: while a transaction is open, a read_committed consumer receives nothing at or after the
last stable offset. In all three cases, the group may have read every record that it can read. Rules:

1. The monitor fetches from a partition only if the fetch can change the lag. Two conditions must be true. First, at
   least one offset is unread. Second, the committed offset has not changed since an earlier sample, or the row is
   suspect (`is_suspect` in `status.py`). At the first sample after a start, a committed offset counts as unchanged if
   the commit is older than DOUBTED_AFTER_MS.
2. A fetch reads the log from the committed offset. If there is no record before the end, the group has read everything
   and its lag is 0. If a fetch finds a record, lag is counted from the record. The monitor stores the result of each
   fetch until the committed offset changes, also after a restart. The next fetch for the same commit starts at the
   offset where the previous fetch ended. If retention has deleted this offset, the next fetch starts at the log start
   offset. If retention has deleted the next record, lag is counted from the log start offset. A read_committed consumer
   ignores records of aborted transactions, but a read_uncommitted consumer reads them. So if a fetch finds only records
   of aborted transactions, lag and status are unknown, as in rule 4. Compaction can delete a found record later. So if
   the topic is known to be compacted, a fetch that found a record is repeated after REPEAT_AFTER_MS. The monitor knows
   this only with the permission DESCRIBE_CONFIGS on the topic.
3. A row is blocked (`is_blocked`) if no record exists between the committed offset and an open transaction. The lag of
   a blocked row is still counted up to the high watermark. A blocked row never has the status STOP and never counts as
   silent. If the committed offset is greater than the last stable offset, the consumer uses read_uncommitted. So the
   row of this consumer is not blocked.
4. While no fetch has found a record, the unread offsets are *doubtful* in two cases. First case: at most FEW_OFFSETS
   offsets are unread, so all of them may be markers or offsets without a record. Second case: the topic has
   transactions (rule 6), so all unread offsets may belong to aborted transactions. The status of a row with doubtful
   offsets is unknown instead of STOP, STALL or WARN (rule 9 of `status.py`). If the committed offset of the row does
   not change for DOUBTED_AFTER_MS, the lag also becomes unknown. Unread offsets that are not doubtful count as records.
   So if more than FEW_OFFSETS offsets are unread and the topic has no transactions, the lag stays known. A fetch is
   impossible without READ permission on the topic, or without a leader of the partition. The limit of rule 5 can also
   prevent a fetch.
5. The monitor makes at most FETCHES_PER_SAMPLE fetches per sample. The fetches for topics with transactions come first,
   in ascending order of lag. All other new fetches follow, also in ascending order of lag. The repeated fetches of rule
   2 come last, and those with the oldest result come first. If a broker refuses READ on a topic, the monitor tries
   again after REFUSED_FOR_MS.
6. In these rules, a topic *has transactions* if the monitor has found a proof. There are two proofs. Without READ
   permission, the proof is an open transaction: a last stable offset below the end offset. With READ permission, the
   proof is a fetch that finds a marker or a record of a transaction. The proof stays valid while groups have commits
   for the topic, also after a restart. If an end offset decreases, the topic was created again or lost records. So the
   proof and the results of the topic are removed. They are also removed if the topic id shows that the topic was
   created again (`stored/topic_ids.py`). For topics without READ permission and without a proof, each sample
   also requests the last stable offset of each partition with lag.

Limit of rule 2: if retention has deleted the record that a fetch found, there is no new fetch. So if the remaining
offsets have no record, they count as unread records.

Limit of rule 6: without READ permission, the monitor detects only transactions that are open during a sample. If more
than FEW_OFFSETS offsets are unread, the records of an undetected aborted transaction count as unread records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignors import TopicPartition
from streaming.combine.big_endian import BoolArray, Int64Array
from streaming.evaluation.lag.lag import MAYBE_ONLY_MARKERS, LagReport
from streaming.evaluation.lag.stored.fetch_results import COMMIT, Commit, FetchResults, row_numbers
from streaming.evaluation.lag.stored.topic_partitions import grown
from streaming.protocol.record_batches import Tail

FEW_OFFSETS = 10
"""If a partition has at most this number of unread offsets, all of them may be markers.

A transaction ends with one marker per partition. Several markers follow each other directly only if compaction removed
the records between them.
"""

DOUBTED_AFTER_MS = 30_000
REFUSED_FOR_MS = 300_000
REPEAT_AFTER_MS = 600_000
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
_NEVER = -1
"""A last stable offset that is before every commit."""


class UnmovedCommits:
    """Stores for each row the time when its committed offset last changed. The caller assigns the row numbers.

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
        """Return for each row the milliseconds since its committed offset last changed.

        If the clock was set back, the result starts again at 0. A new row with an old commit gets the age of the commit
        (rule 1).
        """
        size = int(rows.max(initial=-1)) + 1
        self._offsets, self._since_ms = grown(self._offsets, size, -1), grown(self._since_ms, size, -1)
        is_new = (self._offsets[rows] != committed_offsets) | (self._since_ms[rows] > at_ms)
        since_ms = np.full(len(rows), at_ms, dtype=np.int64)
        if commit_times_ms is not None:
            is_old = (self._offsets[rows] < 0) & (commit_times_ms <= at_ms - DOUBTED_AFTER_MS)
            since_ms[is_old] = commit_times_ms[is_old]
        self._offsets[rows[is_new]] = committed_offsets[is_new]
        self._since_ms[rows[is_new]] = since_ms[is_new]
        unmoved: Int64Array = at_ms - self._since_ms[rows]
        return unmoved


@dataclass(frozen=True, slots=True)
class RowsBehind:
    """The rows of a lag report that have unread offsets. Each field has one element per row.

    `at` contains the indices of the rows in the lag report. `ends` contains the offsets up to which consumers can read.
    If an open transaction begins at this offset, `is_open` is True. After an outage, all 100,000 partitions of all
    groups can have unread offsets. So no code loops over the rows.
    """

    at: Int64Array
    commits: pa.Table
    ends: Int64Array
    log_starts: Int64Array
    unmoved_ms: Int64Array
    is_open: BoolArray


def rows_with_lag(report: LagReport, unmoved_ms: Int64Array, is_suspect: BoolArray) -> Int64Array:
    """Return the indices of the rows that have a lag above 0 and meet the second condition of rule 1."""
    lag = report.partitions["lag"].fill_null(0).to_numpy()
    return np.flatnonzero((lag > 0) & ((unmoved_ms > 0) | is_suspect))


def rows_without_proof(report: LagReport, topics: Iterable[str]) -> Int64Array:
    """Return the indices of the rows whose last stable offsets can prove that `topics` have transactions (rule 6)."""
    is_of_topic = pc.is_in(report.partitions["topic"], value_set=pa.array(sorted(topics), pa.string()))
    return np.flatnonzero(is_of_topic.to_numpy() & (report.partitions["lag"].fill_null(0).to_numpy() > 0))


def topic_partitions(report: LagReport, at: Int64Array) -> list[TopicPartition]:
    """Return the topic partitions of the given rows, sorted."""
    rows = report.partitions.select(["topic", "partition"]).take(pa.array(at))
    distinct = rows.group_by(["topic", "partition"], use_threads=False).aggregate([])
    return sorted(zip(distinct["topic"].to_pylist(), distinct["partition"].to_pylist(), strict=True))


def rows_behind(
    report: LagReport, at: Int64Array, unmoved_ms: Int64Array, stable: Mapping[TopicPartition, int]
) -> RowsBehind:
    """Return the given rows, sorted by lag in ascending order. `stable` contains the starts of open transactions."""
    at = at[np.argsort(report.partitions["lag"].fill_null(0).to_numpy()[at], kind="stable")]
    table = report.partitions.select([*COMMIT, "end_offset", "log_start_offset"]).take(pa.array(at))
    ends, is_open = table["end_offset"].to_numpy().copy(), np.zeros(len(at), dtype=np.bool_)
    if stable:
        topics, partitions = zip(*stable, strict=True)
        known = pa.table([pa.array(topics, pa.string()), pa.array(partitions, pa.int32())], names=list(COMMIT[:2]))
        last_stable = np.append(np.fromiter(stable.values(), np.int64), _NEVER)[row_numbers(known, table)]
        is_open = (table["committed_offset"].to_numpy() <= last_stable) & (last_stable < ends)
        ends[is_open] = last_stable[is_open]
    log_starts = table["log_start_offset"].fill_null(0).to_numpy()
    return RowsBehind(at, table.select(COMMIT), ends, log_starts, unmoved_ms[at], is_open)


class StoredTails(msgspec.Struct, frozen=True):
    """The values for the next start. Each result is a commit and the first three fields of its `Tail`."""

    results: list[tuple[Commit, tuple[int, bool, int]]] = []
    topics_with_transactions: list[str] = []


class NextOffsets:
    """Stores the results of all fetches.

    For each sample, call `topics_without_proof`, `add_stable_offsets`, `due_fetches`, `add_results` and `apply` in this
    order.
    """

    def __init__(self, stored: StoredTails | None = None) -> None:
        self._known = FetchResults()
        self._refused_at_ms: dict[str, int] = {}
        self._with_transactions: set[str] = set()
        if stored is not None:
            self._known.put({commit: Tail(*tail) for commit, tail in stored.results})
            self._with_transactions = set(stored.topics_with_transactions)

    def stored(self) -> StoredTails:
        """Return the values that the monitor loads at its next start."""
        return StoredTails(
            [(commit, (tail.next_offset, tail.is_record, tail.read_to)) for commit, tail in self._known.items()],
            sorted(self._with_transactions),
        )

    def forget_topics(self, topics: Iterable[str]) -> None:
        """Remove the results and proofs of topics that were created again or lost records (rule 6)."""
        forgotten = set(topics)
        if not forgotten:
            return
        self._known.forget_topics(forgotten)
        self._with_transactions -= forgotten

    @property
    def topics_without_proof(self) -> frozenset[str]:
        """The topics without READ permission and without a proof of transactions (rule 6)."""
        return frozenset(self._refused_at_ms).difference(self._with_transactions)

    def add_stable_offsets(
        self, stable: Mapping[TopicPartition, int], end_offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        """Store the topics with open transactions (rule 6). Return each last stable offset below the end offset.

        The last stable offsets must be requested after the end offsets. Otherwise, records that are written between the
        two requests look like an open transaction.
        """
        is_open = {at: end for at, end in stable.items() if end < end_offsets[at]}
        self._with_transactions.update(topic for topic, _ in is_open)
        return is_open

    def due_fetches(
        self, report: LagReport, rows: RowsBehind, now_ms: int, compacted: Collection[str] = ()
    ) -> list[TailFetch]:
        """Return the necessary fetches (rules 1 and 2) in the order of rule 5.

        `due_fetches` also removes the stored results of commits that are no longer in the report.
        """
        if self._with_transactions or self._refused_at_ms:
            present = set(pc.unique(report.partitions["topic"]).to_pylist())
            self._with_transactions &= present
            self._refused_at_ms = {topic: at_ms for topic, at_ms in self._refused_at_ms.items() if topic in present}
        self._known.keep_only(report.partitions)
        known = self._known.of_rows(rows.commits)
        from_offsets = np.maximum(np.where(known.is_record, known.next_offset, known.read_to), rows.log_starts)
        refused = [topic for topic, at_ms in self._refused_at_ms.items() if 0 <= now_ms - at_ms < REFUSED_FOR_MS]
        topics = rows.commits["topic"]
        is_possible = (from_offsets < rows.ends) & ~_is_in(topics, refused).to_numpy()
        due = np.flatnonzero(is_possible & ~known.is_record)
        is_first = _is_in(topics, self._with_transactions).to_numpy()[due]
        age_ms = now_ms - known.fetched_at_ms
        is_old = known.is_record & ((age_ms < 0) | (age_ms >= REPEAT_AFTER_MS))
        is_old &= (rows.log_starts <= known.next_offset) & _is_in(topics, compacted).to_numpy()
        repeated = np.flatnonzero(is_possible & is_old)
        repeated = repeated[np.argsort(known.fetched_at_ms[repeated], kind="stable")]
        ordered = np.concatenate([due[is_first], due[~is_first], repeated])
        return list(islice(_distinct_fetches(rows.commits, from_offsets, ordered), FETCHES_PER_SAMPLE))

    def add_results(self, results: Mapping[TailFetch, FetchResult], now_ms: int) -> None:
        """Store the results of fetches. If a repeated fetch fails, its earlier result counts as a new result."""
        known = self._known.of_commits({_commit_of(fetch) for fetch in results})
        joined: dict[Commit, Tail] = {}
        for fetch, result in results.items():
            earlier = known[_commit_of(fetch)]
            if isinstance(result, Tail):
                joined[_commit_of(fetch)] = _join(earlier, fetch, result)
            elif earlier.is_record:
                joined[_commit_of(fetch)] = earlier
        self._known.put(joined, now_ms)
        for fetch, result in results.items():
            if isinstance(result, Tail):
                self._refused_at_ms.pop(fetch.topic, None)
                self._with_transactions.update([fetch.topic] if result.is_transactional else [])
            elif result is FetchFailure.REFUSED:
                self._refused_at_ms[fetch.topic] = now_ms

    def apply(self, report: LagReport, rows: RowsBehind) -> LagReport:
        """Return a report in which lag is counted from the next record (rules 2 to 4).

        Log start offsets are requested after the end offsets, so they can be greater than the end offsets.
        """
        table, at = report.partitions, rows.at
        has_transactions = _is_in(table["topic"], self._with_transactions).to_numpy()
        next_of_row, is_record, read_to, _ = self._known.of_rows(rows.commits)
        ends, log_starts = (table[name].fill_null(0).to_numpy() for name in ("end_offset", "log_start_offset"))
        unread_offsets = table["committed_offset"].to_numpy().copy()
        unread_offsets[at] = np.minimum(np.maximum(next_of_row, unread_offsets[at]), rows.ends)
        next_offsets = np.maximum(unread_offsets, np.minimum(log_starts, ends))
        unread = rows.ends - next_offsets[at]
        is_blocked, is_doubted = np.zeros((2, table.num_rows), dtype=np.bool_)
        is_blocked[at] = (unread <= 0) & rows.is_open
        is_doubtful = (unread > 0) & ((unread <= FEW_OFFSETS) | has_transactions[at])
        is_doubted[at] = is_doubtful & ~is_record & (rows.unmoved_ms >= DOUBTED_AFTER_MS)
        record_offsets = np.full(table.num_rows, -1, dtype=np.int64)
        record_offsets[at] = np.where(is_record, read_to, -1)
        was_unknown = pc.is_null(table["lag"]).to_numpy()
        changed = {
            "lag": pa.array(np.where(was_unknown, 0, ends - next_offsets), mask=was_unknown | is_doubted),
            "unknown_reason": pc.if_else(pa.array(is_doubted), MAYBE_ONLY_MARKERS, table["unknown_reason"]),
            "next_offset": pa.array(next_offsets),
            "unread_offset": pa.array(unread_offsets),
            "record_offset": pa.array(record_offsets, mask=record_offsets < 0),
            "has_transactions": pa.array(has_transactions),
            "is_blocked": pa.array(is_blocked),
        }
        columns = [changed.get(name, table[name]) for name in table.column_names]
        return LagReport(report.sampled_at_ms, pa.table(columns, schema=table.schema))


def _is_in(topics: pa.ChunkedArray, names: Iterable[str]) -> pa.ChunkedArray:
    return pc.is_in(topics, value_set=pa.array(sorted(names), pa.string()))


def _distinct_fetches(commits: pa.Table, from_offsets: Int64Array, ordered: Int64Array) -> Iterator[TailFetch]:
    """Yield the distinct fetches of the rows, in the order of `ordered`. Several groups can have the same commit."""
    seen: set[TailFetch] = set()
    for start in range(0, len(ordered), FETCHES_PER_SAMPLE):
        rows = ordered[start : start + FETCHES_PER_SAMPLE]
        columns = (column.to_pylist() for column in commits.take(pa.array(rows)).columns)
        for fetch in map(TailFetch, *columns, from_offsets[rows].tolist()):
            if fetch not in seen:
                seen.add(fetch)
                yield fetch


def _commit_of(fetch: TailFetch) -> Commit:
    return fetch.topic, fetch.partition, fetch.committed_offset


def _join(known: Tail, fetch: TailFetch, result: Tail) -> Tail:
    """Return the combined result of earlier fetches and a new fetch.

    The new fetch does not change `next_offset` in two cases. First, an earlier fetch found aborted records. Second,
    retention deleted the offset at which the new fetch should start. The deleted offsets may have had records. A
    repeated fetch (rule 2) starts at `next_offset`, and replaces the earlier result.
    """
    is_continued = known.is_record or known.next_offset == known.read_to == fetch.from_offset
    next_offset = result.next_offset if is_continued else known.next_offset
    return Tail(next_offset, result.is_record, result.read_to)
