"""Compute the loss of records by retention: the deleted unread records, and the time until the next loss.

Lag does not show the loss of records. If retention is a month, a lag of a million records may be harmless. If retention
is an hour, the same lag may be too high. If the lag of a row is unknown, all values of the row are unknown (`lag.py`
describes the reasons). In the rules, c is `unread_offset`. s is the newest log start offset that is not newer than the
commits. A sample reads commits first and requests log start offsets later. So if a group commits, and a client then
deletes all records before the commit (Kafka Streams does so every 30 s), the sample can contain the new log start
offset and the old commit. Such an old commit proves no loss. So s comes from the newest sample up to which the monitor
has read the group's commits. If no such sample exists, s is the present log start offset, and the values are unknown
if c < s. Rules:

1. `records_lost` = s - c if c < s, otherwise 0. `records_lost` counts the offsets that the group has not committed and
   can never read. Compaction and aborted transactions leave offsets without records, so `records_lost` is an upper
   bound. If no fetch has found a record among the lost offsets, all lost offsets may be markers or aborted records
   (`next_offsets.py`). The deletion of markers or aborted records is not a loss. So if no fetch has found a record,
   `records_lost` is null in two cases: at most FEW_OFFSETS offsets are lost, or the topic has transactions. A known
   loss stays known while the committed offset stays the same, also after a restart. Without this exception, a small
   loss would become unknown: the monitor cannot fetch a deleted record again to prove the loss.
2. `lost_since_ms` is the time of the first sample in which s is greater than c, or the time of the commit if the commit
   is later. If `lost_since_ms` is the time of the oldest stored sample, `lost_since_kind` is `at_least`. The start time
   of a loss stays the same, even after a commit or the removal of old samples. The start time of a loss also stays the
   same if the loss is unknown for some samples.
3. `seconds_until_lost` is 0 if records are already lost. If the lag is 0, `seconds_until_lost` is null, because the
   group has read everything. Otherwise, the rate of the log start offset (rules 4 to 6) and `retention.ms`
   (`time_retention.py`) give two estimates. The smaller estimate is the result. If one estimate is unknown, the other
   estimate is the result. If the first estimate has the kind `at_least` (rule 6) and the second estimate is known, the
   second estimate is the result. If both estimates are unknown, `seconds_until_lost` is null. If the rate does not
   apply (rule 4 of `time_retention.py`), only the second estimate counts.
4. The rate is unknown if the log start offset moved less than twice within RATE_WINDOW_MS. For example, the rate is
   unknown for compacted topics and for new topics. The rate is also unknown if the next move is overdue: the last move
   is more than OVERDUE times the mean time between two moves ago. Then the deletion has paused or ended, for example
   because the topic gets all its records within one hour of each day.
5. The rate comes from two moves of the log start offset within RATE_WINDOW_MS: the first move (s1, t1) and the last
   move (s2, t2).

       rate = (s2 - s1) / (t2 - t1)        seconds_until_lost = (c - s2) / rate - (now - t2), at least 0

   The log start offset moves by whole segments, in steps. So even at a constant rate, the real loss can be later than
   the estimated time, by up to the time between two moves. If the result is 0, the next move may delete unread records.
6. The maximum of the estimate from the rate is AHEAD * (t2 - t1). This maximum replaces a longer estimate, and the kind
   is then `at_least`. The kind of all other results is `estimate`.

Limit of the method: it assumes that the group does not commit again. If retention is by time, brokers delete records
that are older than `retention.ms`. If many records are almost as old as `retention.ms`, the log start offset will soon
move faster than the rate. If the rate applies, moves because of DeleteRecords also count. The monitor cannot predict
DeleteRecords requests and changes of `retention.ms`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.big_endian import BoolArray, Int64Array
from streaming.evaluation.lag.lag import MAYBE_ONLY_MARKERS, LagReport
from streaming.evaluation.lag.lag_seconds import AT_LEAST, EXACT
from streaming.evaluation.lag.next_offsets import FEW_OFFSETS
from streaming.evaluation.lag.stored.offset_points import OffsetPoints
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets

LOG_START_POINTS = 30
"""Maximum number of points per topic partition.

The points use 480 bytes. They cover the last ten moves in full and earlier moves in less detail.
"""

RATE_WINDOW_MS = 24 * 3_600_000
"""Maximum age of a move that is used for the rate.

By default, brokers check every 5 minutes whether they can delete segments. So a move can happen every 5 minutes.
"""

AHEAD = 10

OVERDUE = 2
"""Maximum time since the last move, in multiples of the mean time between two moves (rule 4)."""

ESTIMATE = "estimate"

RETENTION_SCHEMA = pa.schema(
    [
        ("records_lost", pa.int64()),
        ("lost_since_ms", pa.int64()),
        ("lost_since_kind", pa.string()),
        ("seconds_until_lost", pa.float64()),
        ("seconds_until_lost_kind", pa.string()),
    ]
)
"""`lost_since_kind` is `exact` or `at_least`. `seconds_until_lost_kind` is `estimate` or `at_least`.

A kind is null if its value is null.
"""


class Loss(NamedTuple):
    """The values `lost_since_ms` and `lost_since_kind`, and the committed offset in the last sample with the loss."""

    since_ms: int
    kind: str
    committed_offset: int


LossKey = tuple[str, str, int]
"""Group id, topic and partition."""

Losses = Mapping[LossKey, Loss]
_NO_LOSSES: Losses = MappingProxyType({})


def retention(  # noqa: PLR0913, PLR0917 - one argument per input
    lag: LagReport,
    starts: SampledOffsets,
    earlier: Losses = _NO_LOSSES,
    left_by_time: pa.ChunkedArray | None = None,
    only_by_time: BoolArray | None = None,
    commits_read_ms: pa.Array | None = None,
) -> pa.Table:
    """Return the loss by retention of each row of the report (RETENTION_SCHEMA).

    `starts` must contain the sample of the report. `earlier` contains the losses up to the previous sample (`losses`).
    `left_by_time` and `only_by_time` are results of `time_retention.py`. `commits_read_ms` contains for each row the
    time up to which the group's commits were read, or null. None means that they were read up to the report's sample.

    In the example, the log start offset rises by 1000 every 600 s. The estimate for the offset 4500 is
    2500 / (1000 / 600 s) - 300 s = 1200 s. So the predicted loss is at 2700 s, and the real loss is at 3000 s:

    >>> from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample, lag_report
    >>> starts = SampledOffsets(LOG_START_POINTS)
    >>> for second, log_start in [(0, 0), (600, 1000), (1200, 2000), (1500, 2000)]:
    ...     _ = starts.add({("orders", 0): log_start}, second * 1000)
    >>> columns = [["late", "slow"], ["orders", "orders"], [0, 0], [900, 4500], [7, 7]]
    >>> commits = pa.table([pa.array(column) for column in columns], names=LAG_SCHEMA.names[:5])
    >>> sample = ClusterSample(1_500_000, {}, {("orders", 0): 9000}, {("orders", 0): 2000})
    >>> answer = retention(lag_report(commits, sample), starts)
    >>> answer["records_lost"].to_pylist(), answer["lost_since_ms"].to_pylist()
    ([1100, 0], [600000, None])
    >>> answer["seconds_until_lost"].to_pylist(), answer["seconds_until_lost_kind"].to_pylist()
    ([0.0, 1200.0], ['estimate', 'estimate'])
    """
    partitions = lag.partitions
    rows = starts.rows(partitions["topic"].combine_chunks(), partitions["partition"].to_numpy())
    is_sampled = starts.sampled_at(rows, lag.sampled_at_ms) & pc.is_valid(partitions["log_start_offset"]).to_numpy()
    committed, waiting = partitions["unread_offset"].to_numpy(), partitions["lag"].fill_null(0).to_numpy()
    log_starts = partitions["log_start_offset"].fill_null(0).to_numpy()
    if commits_read_ms is not None:
        read_starts, is_read = _log_starts_at(starts.points, rows, commits_read_ms, is_sampled)
        is_sampled &= is_read | (log_starts <= committed)
        log_starts = np.where(is_read, read_starts, log_starts)
    is_known = is_sampled & pc.is_valid(partitions["lag"]).to_numpy()
    beyond = log_starts - committed
    is_known &= (beyond <= 0) | _contains_records(partitions, log_starts, beyond)
    if earlier:
        is_known |= _continues(partitions, np.flatnonzero(is_sampled & ~is_known & (beyond > 0)), earlier)
    is_lost = is_known & (beyond > 0)
    commit_times_ms = np.minimum(partitions["commit_timestamp_ms"].to_numpy(), lag.sampled_at_ms)
    past = _lost_since(starts.points, rows, committed, commit_times_ms, is_lost)
    if earlier:
        past = _with_earlier_starts(partitions, past, is_lost, earlier)
    waits = is_known & (waiting > 0)
    has_rate = waits if only_by_time is None else waits & ~only_by_time
    left = None if left_by_time is None else pc.if_else(pa.array(waits), left_by_time, None)
    return pa.table(
        [
            pa.array(np.maximum(beyond, 0), mask=~is_known),
            *past,
            *_until_lost(starts.points, rows, committed, lag.sampled_at_ms, is_lost, has_rate, left),
        ],
        schema=RETENTION_SCHEMA,
    )


def _contains_records(partitions: pa.Table, log_starts: Int64Array, beyond: Int64Array) -> BoolArray:
    """Return for each row whether it is certain that the deleted offsets contained records (rule 1)."""
    is_proven = pc.less(partitions["record_offset"], pa.array(log_starts)).fill_null(False).to_numpy()
    contains: BoolArray = is_proven | ((beyond > FEW_OFFSETS) & ~partitions["has_transactions"].to_numpy())
    return contains


def _log_starts_at(
    points: OffsetPoints, rows: Int64Array, times_ms: pa.Array, is_sampled: BoolArray
) -> tuple[Int64Array, BoolArray]:
    at = np.flatnonzero(is_sampled)
    newest = points.last_until(rows[at], times_ms.fill_null(-1).to_numpy()[at])
    log_starts, is_known = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.bool_)
    log_starts[at], is_known[at] = points.offsets[rows[at], np.maximum(newest, 0)], newest >= 0
    return log_starts, is_known


def _lost_since(
    points: OffsetPoints,
    rows: Int64Array,
    committed_offsets: Int64Array,
    commit_times_ms: Int64Array,
    is_lost: BoolArray,
) -> tuple[pa.Array, pa.Array]:
    """Return the start times and the kinds of losses (rule 2), or null for rows without lost records."""
    since_ms, is_at_least = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.bool_)
    rows, committed_ms = rows[is_lost], commit_times_ms[is_lost]
    first_beyond = points.last_at_or_below(rows, committed_offsets[is_lost]) + 1
    seen_ms = points.times_ms[rows, first_beyond]
    since_ms[is_lost] = np.maximum(seen_ms, committed_ms)
    is_at_least[is_lost] = (first_beyond == 0) & (committed_ms < seen_ms)
    return pa.array(since_ms, mask=~is_lost), _kind(is_at_least, EXACT, ~is_lost)


def losses(partitions: pa.Table, earlier: Losses = _NO_LOSSES) -> Losses:
    """Return the losses of an evaluation. If the loss of a row is unknown now, keep its earlier loss (rule 2)."""
    is_lost = pc.is_valid(partitions["lost_since_ms"])
    unknown = partitions.filter(pc.is_null(partitions["records_lost"])) if earlier else partitions.slice(0, 0)
    hidden = {key: earlier[key] for key in keys(unknown) if key in earlier}
    lost = partitions.filter(is_lost)
    columns = (lost[name].to_pylist() for name in ("lost_since_ms", "lost_since_kind", "committed_offset"))
    return {**hidden, **dict(zip(keys(lost), map(Loss, *columns), strict=True))}


def _continues(partitions: pa.Table, at: Int64Array, earlier: Losses) -> BoolArray:
    """Return True for each row in `at` whose earlier loss continues: the committed offset is unchanged (rule 1)."""
    rows = partitions.take(pa.array(at))
    continues = np.zeros(partitions.num_rows, dtype=np.bool_)
    columns = zip(keys(rows), rows["committed_offset"].to_pylist(), rows["unknown_reason"].to_pylist(), strict=True)
    for row, (key, committed_offset, reason) in zip(at.tolist(), columns, strict=True):
        loss = earlier.get(key)
        is_same = loss is not None and loss.committed_offset == committed_offset
        continues[row] = is_same and reason in {None, MAYBE_ONLY_MARKERS}
    return continues


def _with_earlier_starts(
    partitions: pa.Table, past: tuple[pa.Array, pa.Array], is_lost: BoolArray, earlier: Losses
) -> tuple[pa.Array, pa.Array]:
    """Return the start time and the kind of each loss. A loss that continues keeps its earlier time and kind."""
    times, kinds = (column.to_pylist() for column in past)
    lost = np.flatnonzero(is_lost)
    for at, key in zip(lost.tolist(), keys(partitions.take(pa.array(lost))), strict=True):
        if (loss := earlier.get(key)) is not None:
            times[at], kinds[at] = loss.since_ms, loss.kind
    return pa.array(times, pa.int64()), pa.array(kinds, pa.string())


def keys(partitions: pa.Table) -> Iterable[LossKey]:
    """Return the group id, the topic and the partition of each row."""
    return zip(*(partitions[name].to_pylist() for name in ("group_id", "topic", "partition")), strict=True)


def _until_lost(  # noqa: PLR0913, PLR0917 - one argument per column
    points: OffsetPoints,
    rows: Int64Array,
    committed_offsets: Int64Array,
    now_ms: int,
    is_lost: BoolArray,
    has_rate: BoolArray,
    left_by_time: pa.ChunkedArray | None,
) -> tuple[pa.Array, pa.Array]:
    """Return the seconds until the next loss, and the kinds (rules 3 to 6).

    `has_rate` is False for rows without lag and for rows to which the rate does not apply. `left_by_time` is null for
    rows without lag.
    """
    seconds, is_at_least = np.zeros(len(rows)), np.zeros(len(rows), dtype=np.bool_)
    is_known, at = is_lost.copy(), np.flatnonzero(has_rate)
    distinct, back = np.unique(rows[at], return_inverse=True)
    moved_to, moved_at_ms, rise, stretch_ms, moves = (
        column[back] for column in _moves(points, distinct, now_ms - RATE_WINDOW_MS)
    )
    has_rate = (rise > 0) & ((now_ms - moved_at_ms) * (moves - 1) <= OVERDUE * stretch_ms)
    at, moved_to, moved_at_ms = at[has_rate], moved_to[has_rate], moved_at_ms[has_rate]
    rise, stretch_ms = rise[has_rate], stretch_ms[has_rate]
    ahead_ms = (committed_offsets[at] - moved_to) * (stretch_ms / rise) - (now_ms - moved_at_ms)
    is_known[at] = True
    seconds[at] = np.clip(ahead_ms, 0, AHEAD * stretch_ms) / 1000
    is_at_least[at] = ahead_ms > AHEAD * stretch_ms
    if left_by_time is not None:
        left = left_by_time.fill_null(0.0).to_numpy()
        is_better = ~is_known | is_at_least | (left < seconds)
        applies = ~is_lost & left_by_time.is_valid().to_numpy() & is_better
        seconds[applies], is_at_least[applies], is_known[applies] = left[applies], False, True
    return pa.array(seconds, mask=~is_known), _kind(is_at_least, ESTIMATE, ~is_known)


def _moves(points: OffsetPoints, rows: Int64Array, since_ms: int) -> tuple[Int64Array, ...]:
    """Return five columns: offset and time of the last move, both increases since the first move, number of moves.

    With fewer than two moves, the increase of the offset is 0.
    """
    offsets, times_ms = points.offsets[rows], points.times_ms[rows]
    is_move = np.zeros(offsets.shape, dtype=np.bool_)
    is_move[:, 1:] = (offsets[:, 1:] > offsets[:, :-1]) & (times_ms[:, 1:] >= since_ms)
    is_move &= np.arange(points.limit) < points.counts[rows][:, np.newaxis]
    first, last = np.argmax(is_move, axis=1), points.limit - 1 - np.argmax(is_move[:, ::-1], axis=1)
    row = np.arange(len(rows))
    moved_to, moved_at_ms = offsets[row, last], times_ms[row, last]
    rise = np.where(is_move.any(axis=1), moved_to - offsets[row, first], 0)
    return moved_to, moved_at_ms, rise, moved_at_ms - times_ms[row, first], is_move.sum(axis=1)


def _kind(is_at_least: BoolArray, otherwise: str, is_absent: BoolArray) -> pa.Array:
    return pc.if_else(pa.array(is_at_least, mask=is_absent), AT_LEAST, otherwise)
