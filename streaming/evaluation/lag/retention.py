"""Compute the loss of records by retention: unread records that were deleted, and the time until more are deleted.

Lag does not show this loss. If retention is a month, a lag of a million records may be harmless. If retention is an
hour, the same lag may be too high. If the lag of a row is unknown, all values of the row are unknown (`lag.py` shows
the reason). Otherwise c is `next_offset`: the committed offset, or the offset of the first record after the committed
offset. s is the log start offset. Rules:

1. `records_lost` = s - c if c < s, otherwise 0. The group has not read the offsets from c to s, and can never read
   them. Some of these offsets may have no record, because of compaction or aborted transactions. So `records_lost` is
   an upper bound. `records_lost` is null if s - c is small and the monitor did not find a record at these offsets. All
   of these offsets may be transaction markers. The deletion of a marker is not a loss (`next_offsets.py`).
2. `lost_since_ms`: the time of the first sample in which s is greater than c. If the commit is later than this sample,
   `lost_since_ms` is the time of the commit. If s was already greater than c in the oldest stored sample, the kind is
   `at_least`. `lost_since_ms` does not change during a loss, even if the group commits or old samples are removed.
3. `seconds_until_lost`: 0 if records are already lost. Null if the lag is 0. A group that has read everything cannot
   lose records.
4. `seconds_until_lost` is also null if the log start offset moved less than twice within RATE_WINDOW_MS. In this case,
   the rate is unknown. The topic may be new, may be compacted, or may have unlimited retention.
5. Otherwise `seconds_until_lost` is computed from two moves of the log start offset within RATE_WINDOW_MS. (s1, t1) is
   the first move, and (s2, t2) is the last move:

       rate = (s2 - s1) / (t2 - t1)        seconds_until_lost = (c - s2) / rate - (now - t2), at least 0

   The log start offset moves in steps, because brokers delete whole segments. The formula assumes a straight line from
   move to move. This line reaches c before the log start offset becomes greater than c. So at a constant rate, the real
   loss is never earlier than the result. It is at most one step later than the result. A result of 0 means that the
   next step may delete unread records.
6. `seconds_until_lost` is at most AHEAD * (t2 - t1). If the computed time is longer, the result is this maximum and the
   kind is `at_least`.

Limits of the method: it assumes that the group does not commit again. If retention is by time, brokers now delete the
records that were written one retention time ago. So if many records were written at about that time, the log start
offset will soon move faster than the computed rate. The monitor cannot predict DeleteRecords requests and changes of
retention.ms.

Example: the log start offset rises by 1000 every 600 s. At 1200 s, it rises to 2000. For c = 4500, the result at 1500 s
is 2500 / (1000 / 600 s) - 300 s = 1200 s. So the predicted time of the loss is 2700 s. The real loss is at 3000 s, when
the log start offset rises to 5000.
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
"""Maximum number of points per topic partition.

The points use 480 bytes. They cover the last ten moves in full and earlier moves in less detail.
"""

RATE_WINDOW_MS = 24 * 3_600_000
"""Maximum age of a move that is used for the rate. By default, brokers check every 5 minutes for segments to delete."""

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
"""A kind is null if its value is null. The kinds of `lost_since_ms` are `exact` and `at_least`.

The kinds of `seconds_until_lost` are `estimate` and `at_least`.
"""

Losses = Mapping[tuple[str, str, int], tuple[int, str]]
"""The losses at one sample: `lost_since_ms` and `lost_since_kind`. The key is group id, topic and partition."""
_NO_LOSSES: Losses = MappingProxyType({})


def retention(lag: LagReport, starts: SampledOffsets, earlier: Losses = _NO_LOSSES) -> pa.Table:
    """Return the loss by retention for each row of the report (RETENTION_SCHEMA).

    `starts` must contain the sample of the report. `earlier` contains the losses at the previous sample.

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
    """Apply rule 2. Returns times and kinds. Both are null if no records are lost."""
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
    """Return the times and kinds of losses. If a loss continues, its earlier time and kind are returned."""
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

    Two of them are the offset and the time of the last move. The other two are the increase and the time from the first
    move to the last move. Only moves since `since_ms` count. If there are less than two moves, the increase is 0.
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
