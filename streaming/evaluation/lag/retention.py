"""Find the loss of records by retention: records deleted before a group read them, and the time until more are deleted.

Lag cannot show this. A lag of a million is harmless if records are kept for a month. It is too large if they are kept
for an hour. If the lag of a row is unknown, all values of the row are unknown (`lag.py` shows the reason). Otherwise c
is `next_offset`, the offset of the record that the group reads next. It is the committed offset, or the offset of the
first record after the committed offset. s is the log start offset. Rules:

1. `records_lost` = s - c if c < s, otherwise 0. These are the offsets that the group has not committed and can never
   read. Compaction and aborted transactions leave offsets without records, so this is an upper bound. The result is
   null if these are only a few offsets and no fetch showed a record there. Such offsets may be transaction markers,
   whose deletion is not a loss (`next_offsets.py`).
2. `lost_since_ms`: the time of the first sample in which s is greater than c. If the commit is later than this sample,
   the time of the commit is used. The kind is `at_least` if s was already greater than c in the oldest stored sample.
   The time stays the same in all samples of one loss. Stored samples get fewer with age, and a group can commit during
   a loss.
3. `seconds_until_lost`: 0 if records are already lost. Null if the lag is 0, because a group that has read everything
   cannot lose records.
4. The result is also null if the log start offset moved less than twice within RATE_WINDOW_MS, because the rate is then
   unknown. Such a topic can have unlimited retention, or it can be compacted or new.
5. Otherwise the result comes from two moves of the log start offset within RATE_WINDOW_MS. (s1, t1) is the first move,
   and (s2, t2) is the last move:

       rate = (s2 - s1) / (t2 - t1)        seconds_until_lost = (c - s2) / rate - (now - t2), at least 0

   The log start offset moves by whole segments, in steps. The line through the upper corners of the steps reaches c
   before a step passes c. So at a constant rate, the real loss is never earlier than the result, and at most one step
   later. A result of 0 means that the next step may delete unread records.
6. The result is at most AHEAD times the period over which the rate was measured. A longer result is replaced by this
   maximum, and its kind is `at_least`.

Limits: the result assumes that the group does not commit again. With retention by time, the deletion rate is the write
rate of one retention time ago. If a burst of records is about to expire, the log start offset will move faster than the
present rate. DeleteRecords and a change of retention.ms cannot be predicted.

Example: the log start offset rises by 1000 every 600 s. At 1200 s it rises to 2000. For c = 4500, the result at 1500 s
is 2500 / (1000 / 600 s) - 300 s = 1200 s, which means a loss at 2700 s. The record is really lost at 3000 s, when the
log start offset rises to 5000.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.wire import BoolArray, Int64Array
from streaming.evaluation.lag.lag import LagReport
from streaming.evaluation.lag.lag_seconds import AT_LEAST, EXACT
from streaming.evaluation.lag.next_offsets import FEW_OFFSETS
from streaming.evaluation.lag.offset_points import OffsetPoints
from streaming.evaluation.lag.sampled_offsets import SampledOffsets

LOG_START_POINTS = 30
"""Points per topic partition. They use 480 bytes. They cover the last ten moves, and earlier moves in less detail."""

RATE_WINDOW_MS = 24 * 3_600_000
"""Maximum age of a move that counts for the present rate. Brokers delete segments every 5 minutes by default."""

AHEAD = 10

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
"""A kind is null if its number is null. The kinds of `lost_since_ms` are `exact` and `at_least`.

The kinds of `seconds_until_lost` are `estimate` and `at_least`.
"""

Losses = Mapping[tuple[str, str, int], tuple[int, str]]
"""`lost_since_ms` and `lost_since_kind` of the losses of one sample, by group id, topic and partition."""
_NO_LOSSES: Losses = MappingProxyType({})


def retention(lag: LagReport, starts: SampledOffsets, earlier: Losses = _NO_LOSSES) -> pa.Table:
    """Return the loss by retention of each row of the report (RETENTION_SCHEMA).

    `starts` must contain the sample of the report. `earlier` are the losses of the sample before.

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
    is_known = starts.sampled_at(rows, lag.sampled_at_ms)
    is_known &= pc.and_(pc.is_valid(partitions["lag"]), pc.is_valid(partitions["log_start_offset"])).to_numpy()
    committed, waiting = partitions["next_offset"].to_numpy(), partitions["lag"].fill_null(0).to_numpy()
    beyond = partitions["log_start_offset"].fill_null(0).to_numpy() - committed
    is_known &= partitions["is_record"].to_numpy() | (beyond <= 0) | (beyond > FEW_OFFSETS)
    is_lost = is_known & (beyond > 0)
    commit_times_ms = np.minimum(partitions["commit_timestamp_ms"].to_numpy(), lag.sampled_at_ms)
    past = _lost_since(starts.points, rows, committed, commit_times_ms, is_lost)
    if earlier:
        past = _with_earlier_starts(partitions, past, is_lost, earlier)
    return pa.table(
        [
            pa.array(np.maximum(beyond, 0), mask=~is_known),
            *past,
            *_until_lost(starts.points, rows, committed, lag.sampled_at_ms, is_lost, is_known & (waiting > 0)),
        ],
        schema=RETENTION_SCHEMA,
    )


def _lost_since(
    points: OffsetPoints,
    rows: Int64Array,
    committed_offsets: Int64Array,
    commit_times_ms: Int64Array,
    is_lost: BoolArray,
) -> tuple[pa.Array, pa.Array]:
    """Apply rule 2. Returns times and kinds. Both are null if nothing is lost."""
    since_ms, is_at_least = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.bool_)
    rows, committed_ms = rows[is_lost], commit_times_ms[is_lost]
    first_beyond = points.last_at_or_below(rows, committed_offsets[is_lost]) + 1
    seen_ms = points.times_ms[rows, first_beyond]
    since_ms[is_lost] = np.maximum(seen_ms, committed_ms)
    is_at_least[is_lost] = (first_beyond == 0) & (committed_ms < seen_ms)
    return pa.array(since_ms, mask=~is_lost), _kind(is_at_least, EXACT, ~is_lost)


def losses(partitions: pa.Table) -> Losses:
    """Return the losses in the rows of an evaluation."""
    lost = partitions.filter(pc.is_valid(partitions["lost_since_ms"]))
    times = zip(lost["lost_since_ms"].to_pylist(), lost["lost_since_kind"].to_pylist(), strict=True)
    return dict(zip(_keys(lost), times, strict=True))


def _with_earlier_starts(
    partitions: pa.Table, past: tuple[pa.Array, pa.Array], is_lost: BoolArray, earlier: Losses
) -> tuple[pa.Array, pa.Array]:
    """Return the times and kinds, with the earlier ones for losses that continue."""
    times, kinds = (column.to_pylist() for column in past)
    lost = np.flatnonzero(is_lost)
    for at, key in zip(lost.tolist(), _keys(partitions.take(pa.array(lost))), strict=True):
        times[at], kinds[at] = earlier.get(key, (times[at], kinds[at]))
    return pa.array(times, pa.int64()), pa.array(kinds, pa.string())


def _keys(partitions: pa.Table) -> Iterable[tuple[str, str, int]]:
    return zip(*(partitions[name].to_pylist() for name in ("group_id", "topic", "partition")), strict=True)


def _until_lost(  # noqa: PLR0913, PLR0917 - one argument per column
    points: OffsetPoints,
    rows: Int64Array,
    committed_offsets: Int64Array,
    now_ms: int,
    is_lost: BoolArray,
    waits: BoolArray,
) -> tuple[pa.Array, pa.Array]:
    """Apply rules 3 to 6. Returns seconds and kinds."""
    seconds, is_at_least = np.zeros(len(rows)), np.zeros(len(rows), dtype=np.bool_)
    is_known, at = is_lost.copy(), np.flatnonzero(waits)
    distinct, back = np.unique(rows[at], return_inverse=True)
    moved_to, moved_at_ms, rise, stretch_ms = (
        column[back] for column in _moves(points, distinct, now_ms - RATE_WINDOW_MS)
    )
    has_rate = rise > 0
    at, moved_to, moved_at_ms = at[has_rate], moved_to[has_rate], moved_at_ms[has_rate]
    rise, stretch_ms = rise[has_rate], stretch_ms[has_rate]
    ahead_ms = (committed_offsets[at] - moved_to) * (stretch_ms / rise) - (now_ms - moved_at_ms)
    is_known[at] = True
    seconds[at] = np.clip(ahead_ms, 0, AHEAD * stretch_ms) / 1000
    is_at_least[at] = ahead_ms > AHEAD * stretch_ms
    return pa.array(seconds, mask=~is_known), _kind(is_at_least, ESTIMATE, ~is_known)


def _moves(points: OffsetPoints, rows: Int64Array, since_ms: int) -> tuple[Int64Array, ...]:
    """Return four values for each row.

    They are the offset and the time of its last move, and the rise and the duration from its first to its last move.
    Only moves since `since_ms` count. With less than two moves, the rise is 0.
    """
    offsets, times_ms = points.offsets[rows], points.times_ms[rows]
    is_move = np.zeros(offsets.shape, dtype=np.bool_)
    is_move[:, 1:] = (offsets[:, 1:] > offsets[:, :-1]) & (times_ms[:, 1:] >= since_ms)
    is_move &= np.arange(points.limit) < points.counts[rows][:, np.newaxis]
    first, last = np.argmax(is_move, axis=1), points.limit - 1 - np.argmax(is_move[:, ::-1], axis=1)
    row = np.arange(len(rows))
    moved_to, moved_at_ms = offsets[row, last], times_ms[row, last]
    rise = np.where(is_move.any(axis=1), moved_to - offsets[row, first], 0)
    return moved_to, moved_at_ms, rise, moved_at_ms - times_ms[row, first]


def _kind(is_at_least: BoolArray, otherwise: str, is_absent: BoolArray) -> pa.Array:
    return pc.if_else(pa.array(is_at_least, mask=is_absent), AT_LEAST, otherwise)
