"""Loss by retention: what was deleted before a group read it, and how long until more is.

Lag cannot answer this: a lag of a million is fine on a topic kept for a month and too late on one kept for an hour.
A row is unknown where its lag is (`lag.py` says why). Else, with c the offset of the record that the group reads next
(`next_offset`: the committed offset, or the first record after it) and s the log start:

1. `records_lost` = s - c where c < s, else 0: offsets the group had not committed and can never read. Compaction and
   aborted transactions leave offsets without records, so it is at most so many. Null where these are few offsets that
   nobody looked at in time: transaction markers alone are no loss (`next_offsets.py`).
2. `lost_since_ms`: the first sample that saw s beyond c, or the commit's own time if that is later. `at_least` where
   the oldest sample kept saw it already: it is lost for at least so long. An answer stands while the loss does.
3. `seconds_until_lost`: 0 where something is lost already; null where nothing waits to be read (lag 0): a group that
   has read everything has nothing to lose, wherever the log start goes.
4. Null, too, where the log start moved less than twice within RATE_WINDOW_MS: no rate can be told from that. The topic
   may be kept for ever, compacted, or merely be young.
5. Else, with the first (s1, t1) and the last (s2, t2) of those moves:

       rate = (s2 - s1) / (t2 - t1)        seconds_until_lost = (c - s2) / rate - (now - t2), at least 0

   The log start moves by whole segments: a staircase, whose rises are sampled. The line through its upper corners
   reaches c before a rise passes it. So at an even rate the answer is early by one rise at most, never late; 0 says
   that the next rise may do it.
6. No rate is trusted further ahead than AHEAD times the stretch it was measured over: beyond that, `at_least` so long.

Limits. It is the time left to a group that commits nothing more. Retention by time deletes as fast as was written a
retention ago; a burst that is about to expire moves the log start faster than the present rate. DeleteRecords and a
changed retention.ms come without notice.

Worked example: the log start rises by 1000 every 600 s, last at 1200 s to 2000; at 1500 s, c = 4500 has
2500 / (1000 / 600 s) - 300 s = 1200 s left, until 2700 s. It is lost at the rise to 5000, at 3000 s.
"""

from __future__ import annotations

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
"""Points kept a topic partition: 480 bytes, the last ten moves and, more coarsely, what was before."""

RATE_WINDOW_MS = 24 * 3_600_000
"""How old a move may be that the present rate is told from. Brokers look for segments to delete every 5 minutes."""

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
"""Kinds: `exact` or `at_least` for the past, `estimate` or `at_least` for the future; null where their number is."""


def retention(lag: LagReport, starts: SampledOffsets, before: pa.Table | None = None) -> pa.Table:
    """Loss by retention of each row of the report (RETENTION_SCHEMA); `starts` has taken in the same sample.

    `before` is the answer at the sample before, for the same rows: a loss keeps the time since which it was known.

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
    return pa.table(
        [
            pa.array(np.maximum(beyond, 0), mask=~is_known),
            *(past if before is None else _standing(before, past)),
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
    """Rule 2, without what was answered before: times and kinds, null where nothing is lost."""
    since_ms, is_at_least = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.bool_)
    rows, committed_ms = rows[is_lost], commit_times_ms[is_lost]
    first_beyond = points.last_at_or_below(rows, committed_offsets[is_lost]) + 1
    seen_ms = points.times_ms[rows, first_beyond]
    since_ms[is_lost] = np.maximum(seen_ms, committed_ms)
    is_at_least[is_lost] = (first_beyond == 0) & (committed_ms < seen_ms)
    return pa.array(since_ms, mask=~is_lost), _kind(is_at_least, EXACT, ~is_lost)


def _standing(before: pa.Table, past: tuple[pa.Array, pa.Array]) -> tuple[pa.Array, pa.Array]:
    """What was answered before, where something is lost now as it was then."""
    stands = pc.and_(pc.is_valid(before["lost_since_ms"]), pc.is_valid(past[0]))
    return (
        pc.if_else(stands, before["lost_since_ms"], past[0]).combine_chunks(),
        pc.if_else(stands, before["lost_since_kind"], past[1]).combine_chunks(),
    )


def _until_lost(  # noqa: PLR0913, PLR0917 - columns, one argument each
    points: OffsetPoints,
    rows: Int64Array,
    committed_offsets: Int64Array,
    now_ms: int,
    is_lost: BoolArray,
    waits: BoolArray,
) -> tuple[pa.Array, pa.Array]:
    """Rules 3 to 6: seconds and kinds."""
    seconds, is_at_least = np.zeros(len(rows)), np.zeros(len(rows), dtype=np.bool_)
    should_report, asked = is_lost.copy(), np.flatnonzero(waits)
    distinct, back = np.unique(rows[asked], return_inverse=True)
    moved_to, moved_at_ms, rise, stretch_ms = (one[back] for one in _moves(points, distinct, now_ms - RATE_WINDOW_MS))
    has_rate = rise > 0
    asked, moved_to, moved_at_ms = asked[has_rate], moved_to[has_rate], moved_at_ms[has_rate]
    rise, stretch_ms = rise[has_rate], stretch_ms[has_rate]
    ahead_ms = (committed_offsets[asked] - moved_to) * (stretch_ms / rise) - (now_ms - moved_at_ms)
    should_report[asked] = True
    seconds[asked] = np.clip(ahead_ms, 0, AHEAD * stretch_ms) / 1000
    is_at_least[asked] = ahead_ms > AHEAD * stretch_ms
    return pa.array(seconds, mask=~should_report), _kind(is_at_least, ESTIMATE, ~should_report)


def _moves(points: OffsetPoints, rows: Int64Array, since_ms: int) -> tuple[Int64Array, ...]:
    """Per row where its last move led to and when, and what it rose in which time since the first move.

    Only moves since a time count. With less than two of them the rise is 0.
    """
    offsets, times_ms = points.offsets[rows], points.times_ms[rows]
    is_move = np.zeros(offsets.shape, dtype=np.bool_)
    is_move[:, 1:] = (offsets[:, 1:] > offsets[:, :-1]) & (times_ms[:, 1:] >= since_ms)
    is_move &= np.arange(points.limit) < points.counts[rows][:, np.newaxis]
    first, last = np.argmax(is_move, axis=1), points.limit - 1 - np.argmax(is_move[:, ::-1], axis=1)
    line = np.arange(len(rows))
    moved_to, moved_at_ms = offsets[line, last], times_ms[line, last]
    rise = np.where(is_move.any(axis=1), moved_to - offsets[line, first], 0)
    return moved_to, moved_at_ms, rise, moved_at_ms - times_ms[line, first]


def _kind(is_at_least: BoolArray, otherwise: str, is_absent: BoolArray) -> pa.Array:
    return pc.if_else(pa.array(is_at_least, mask=is_absent), AT_LEAST, otherwise)
