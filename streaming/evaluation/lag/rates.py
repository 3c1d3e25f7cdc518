"""Compute consume rates from committed offsets, and produce rates from sampled end offsets, in records per second.

Both rates are averages over a window of WINDOW_MS (five minutes). An unknown rate is null, never 0. Rules for the
consume rate of a pair of group and partition:

1. A point is (committed offset, time of the commit). The time of a point is the time of the commit in the cluster's
   time (`stored/commit_times.py`). So it does not matter when the monitor reads the commit. If the time is later than
   the sample, the point has the time of the sample.
2. A new commit becomes a point at the next sample. Each slot of SLOT_MS has one point: the slot's last commit. POINTS
   slots cover the window.
3. The points of a partition are removed if the committed offset or the timestamp decreases. The points are also removed
   if the committed offset changes but the timestamp does not. Possible reasons are a rewind, a new topic, or a
   coordinator with a slow clock. The points of a partition are also removed if the previous sample did not contain the
   partition, or if the topic id shows a new topic (`stored/topic_ids.py`). The monitor stores points only in memory, so
   a restart removes all points.
4. The monitor assumes that the committed offset rises evenly between two commits. So a group that commits every 60 s
   has the same rate as a group that commits every second. After a pause of more than WINDOW_MS, the monitor assumes
   that the offset rose only within the last WINDOW_MS before the new commit. Exception: if, at the previous sample, the
   monitor had read commits only up to an earlier time, it assumes that the offset rose only after this time.
5. Usually, the window ends at the last commit. Exception: if the time since the last commit is longer than the longest
   interval between two commits, the window ends at `read_up_to_ms` minus this interval. The monitor assumes no progress
   after the last commit. An interval of WINDOW_MS or more is a pause, and is never the longest interval. So after the
   last commit, the rate falls to 0 within two windows. The time since the last commit is `read_up_to_ms` minus the
   time of the last commit.
6. The rate is unknown if the points cover less than MIN_SPAN_MS. Exception: if the last commit is older than the
   window, the rate is 0.
7. The step between two commits *crosses* the log start if two conditions are true. First, the log start offset is above
   the first committed offset and below the second. Second, the log start offset is at most the end offset of the
   previous sample. Then retention perhaps deleted records of the step before the group consumed them. So neither the
   records nor the time of the step are counted: all earlier points move by the offset and by the time of the step.
   After a step of WINDOW_MS or more, the points are removed instead. A deletion is not always a loss: every 30 s, Kafka
   Streams deletes the records of a repartition topic up to a committed offset. Usually, this is the second committed
   offset of the step, so the first condition is false. If the group commits more often than the monitor samples, the
   second condition is false while the group has little lag. If the group has a large lag, some of its steps do not
   count. If the monitor samples every 30 s or less often, the rate of such a late group can be unknown.

Rules for the produce rate of a topic partition:

8. The monitor assumes that the end offset rises evenly between two samples. The monitor stores the sampled end offsets,
   so the rate is known after a restart. The rate is unknown if the samples cover less than MIN_SPAN_MS. If the end
   offset decreases, all earlier samples are removed (`offset_points`, rule 2). They are also removed if the topic id
   shows a new topic.

Rules for rows and groups:

9. If the group is blocked, or if the topic or the partition does not exist, both rates are unknown. If the committed
   offset is greater than the end offset, the consume rate is unknown, because the group has not read up to this offset.
10. The rate of a group is the sum of the rates of its partitions. Deleted partitions are ignored. If the rate of any
   other partition is unknown, the rate of the group is unknown.
11. Time to catch up = lag / (consume rate - produce rate). The time to catch up is known only if two conditions are
    true. First, the lag is above 0. Second, the consume rate minus the produce rate is more than MIN_GAIN times the
    consume rate. A difference below this limit may be only an error of the two rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignors import TopicPartition
from streaming.combine.big_endian import BoolArray, Float64Array, Int64Array
from streaming.evaluation.lag.lag import BLOCKED, END_BEFORE_COMMIT, PARTITION_DELETED, TOPIC_DELETED, LagReport
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets
from streaming.evaluation.lag.stored.topic_partitions import grown

WINDOW_MS = 300_000
MIN_SPAN_MS = 60_000
SLOT_MS = 30_000
POINTS = WINDOW_MS // SLOT_MS + 2
"""Number of points per pair of group and partition. The points use 192 bytes."""

MIN_GAIN = 0.02

RATES_SCHEMA = pa.schema([("consumed_records_per_second", pa.float64()), ("produced_records_per_second", pa.float64())])

DELETED = pa.array([TOPIC_DELETED, PARTITION_DELETED])
"""Reasons for an unknown lag of partitions that do not exist (rules 9 and 10)."""

_WITHOUT_PRODUCE_RATE = pa.array([BLOCKED, TOPIC_DELETED, PARTITION_DELETED])
_WITHOUT_CONSUME_RATE = pa.array([*_WITHOUT_PRODUCE_RATE.to_pylist(), END_BEFORE_COMMIT])
_FIRST_ROWS = 64
_NONE = -1
"""Placeholder for a missing point or a missing time."""


class LogBounds(NamedTuple):
    """The sampled log start offset and end offset of each row. NO_START and NO_END mean unknown."""

    starts: Int64Array
    ends: Int64Array


NO_START, NO_END = -1, 2**63 - 1
NO_BOUNDS = LogBounds(np.array(NO_START, dtype=np.int64), np.array(NO_END, dtype=np.int64))
"""Unknown bounds of every row."""


class CommitPoints:
    """The last commits of many rows (rules 1 to 3 and 7). The caller assigns the row numbers.

    >>> points, row = CommitPoints(), np.array([0])
    >>> for at_ms in range(0, 120_001, 20_000):
    ...     _ = points.add(row, np.array([at_ms // 20]), np.array([at_ms]), at_ms, np.array([at_ms]))
    >>> points.rates(row, np.array([120_000])).tolist()
    [50.0]
    """

    def __init__(self) -> None:
        # Points are aligned to the right, so the newest is last.
        self._offsets: Int64Array = np.full((_FIRST_ROWS, POINTS), _NONE, dtype=np.int64)
        self._times_ms: Int64Array = np.full((_FIRST_ROWS, POINTS), _NONE, dtype=np.int64)
        self._samples_of: Int64Array = np.full(_FIRST_ROWS, _NONE, dtype=np.int64)
        self._read_up_to_ms: Int64Array = np.full(_FIRST_ROWS, _NONE, dtype=np.int64)
        self._ends: Int64Array = np.full(_FIRST_ROWS, NO_END, dtype=np.int64)
        self._samples = 0

    def add(  # noqa: PLR0913, PLR0917 - one argument per input
        self,
        rows: Int64Array,
        offsets: Int64Array,
        commit_times_ms: Int64Array,
        sampled_at_ms: int,
        read_up_to_ms: Int64Array,
        log: LogBounds = NO_BOUNDS,
    ) -> BoolArray:
        """Add the last commits of one sample. The rows are distinct. A negative `read_up_to_ms` means unknown.

        Return True for each row whose last step crosses the log start (rule 7). With NO_BOUNDS, no step crosses it.
        """
        size = int(rows.max(initial=-1)) + 1
        self._offsets, self._times_ms = grown(self._offsets, size, _NONE), grown(self._times_ms, size, _NONE)
        self._samples_of = grown(self._samples_of, size, _NONE)
        self._read_up_to_ms, self._ends = grown(self._read_up_to_ms, size, _NONE), grown(self._ends, size, NO_END)
        times_ms = np.clip(commit_times_ms, 0, sampled_at_ms)
        last_offsets, last_ms = self._offsets[rows, -1], self._times_ms[rows, -1]
        starts = (self._samples_of[rows] != self._samples) | (last_ms == _NONE)
        starts |= (offsets < last_offsets) | (times_ms < last_ms) | ((times_ms == last_ms) & (offsets != last_offsets))
        crosses: BoolArray = (
            ~starts & (last_offsets < log.starts) & (log.starts < offsets) & (log.starts <= self._ends[rows])
        )
        starts |= crosses & (times_ms - last_ms >= WINDOW_MS)
        self._ends[rows] = log.ends
        self._move(rows[crosses], (offsets - last_offsets)[crosses], (times_ms - last_ms)[crosses])
        read_before_ms = self._read_up_to_ms[rows]
        self._samples += 1
        self._samples_of[rows], self._read_up_to_ms[rows] = self._samples, read_up_to_ms
        self._times_ms[rows[starts]] = _NONE
        self._append(rows[starts], offsets[starts], times_ms[starts])
        is_new = ~starts & ~crosses & (times_ms > last_ms)
        pause_end_ms = np.minimum(read_before_ms, times_ms - WINDOW_MS)
        follows_pause = is_new & (pause_end_ms > last_ms)
        self._append(rows[follows_pause], last_offsets[follows_pause], pause_end_ms[follows_pause])
        self._append(rows[is_new], offsets[is_new], times_ms[is_new])
        return crosses

    def forget(self, rows: Int64Array) -> None:
        """Remove the points of the given rows."""
        self._times_ms[rows[rows < len(self._times_ms)]] = _NONE

    def rates(self, rows: Int64Array, read_up_to_ms: Int64Array) -> Float64Array:
        """Return the consume rate of each row (rules 4 to 6). NaN means unknown."""
        offsets, times_ms = self._offsets[rows], self._times_ms[rows]
        is_point = times_ms != _NONE
        newest_ms, newest = times_ms[:, -1], offsets[:, -1]
        first_ms = np.take_along_axis(times_ms, np.argmax(is_point, axis=1)[:, np.newaxis], axis=1)[:, 0]
        intervals_ms = np.where(is_point[:, :-1], np.diff(times_ms, axis=1), 0)
        longest_ms = np.where(intervals_ms < WINDOW_MS, intervals_ms, 0).max(axis=1)  # without pauses
        end_ms = np.maximum(newest_ms, read_up_to_ms - longest_ms)
        begin_ms = np.maximum(end_ms - WINDOW_MS, first_ms)
        elapsed_ms = np.maximum(end_ms - begin_ms, 1)
        rates: Float64Array = (newest - _offset_at(offsets, times_ms, begin_ms)) * 1000 / elapsed_ms
        is_known = (newest_ms - first_ms >= MIN_SPAN_MS) | (newest_ms <= read_up_to_ms - WINDOW_MS)
        return np.where(is_known & (newest_ms != _NONE) & (read_up_to_ms >= 0), rates, np.nan)

    def _move(self, rows: Int64Array, offsets: Int64Array, times_ms: Int64Array) -> None:
        """Move all points of each row, so that the last point becomes the new commit (rule 7)."""
        self._offsets[rows] += offsets[:, np.newaxis]
        self._times_ms[rows] += np.where(self._times_ms[rows] == _NONE, 0, times_ms[:, np.newaxis])

    def _append(self, rows: Int64Array, offsets: Int64Array, times_ms: Int64Array) -> None:
        """Append one point per row, or replace the last point if it is in the same slot (rule 2).

        The first point of a row is never replaced, so that the points cover as much time as possible.
        """
        shares_slot = self._times_ms[rows, -1] // SLOT_MS == times_ms // SLOT_MS
        moved = rows[~(shares_slot & (self._times_ms[rows, -2] != _NONE))]
        for matrix in (self._offsets, self._times_ms):
            matrix[moved, :-1] = matrix[moved, 1:]
        self._offsets[rows, -1], self._times_ms[rows, -1] = offsets, times_ms


def _offset_at(offsets: Int64Array, times_ms: Int64Array, at_ms: Int64Array) -> Float64Array:
    """Return the committed offset of each row at `at_ms` (rule 4). The first point must not be after `at_ms`."""
    newest_at = times_ms.shape[1] - 1
    right = np.minimum((times_ms <= at_ms[:, np.newaxis]).sum(axis=1), newest_at)[:, np.newaxis]
    left = np.maximum(right - 1, 0)
    left_ms, right_ms, left_offset, right_offset = (
        np.take_along_axis(matrix, at, axis=1)[:, 0] for matrix in (times_ms, offsets) for at in (left, right)
    )
    width_ms = np.maximum(right_ms - left_ms, 1)
    share = np.where(at_ms >= right_ms, 1.0, (at_ms - left_ms) / width_ms)
    found: Float64Array = np.where(share == 1.0, right_offset, left_offset + share * (right_offset - left_offset))
    return found


def produce_rates(ends: SampledOffsets, sampled_at_ms: int) -> Float64Array:
    """Return the produce rate of each row of `ends` (rule 8). NaN means unknown.

    >>> ends = SampledOffsets(limit=60)
    >>> for offset, at_ms in [(100, 0), (100, 30_000), (700, 60_000)]:
    ...     _ = ends.add({("orders", 0): offset}, at_ms)
    >>> produce_rates(ends, 60_000).tolist()
    [10.0]
    """
    rows, points = np.arange(len(ends)), ends.points
    newest = np.maximum(points.counts[rows] - 1, 0)
    right = np.minimum(points.first_since(rows, sampled_at_ms - WINDOW_MS), newest)
    left = np.maximum(right - 1, 0)
    left_ms, right_ms = points.times_ms[rows, left], points.times_ms[rows, right]
    begin_ms = np.where(right > 0, sampled_at_ms - WINDOW_MS, right_ms)
    share = np.where(right > 0, (begin_ms - left_ms) / np.maximum(right_ms - left_ms, 1), 1.0)
    left_offset, right_offset = points.offsets[rows, left], points.offsets[rows, right]
    begin_offset = left_offset + share * (right_offset - left_offset)
    elapsed_ms = sampled_at_ms - begin_ms
    rates = (points.offsets[rows, newest] - begin_offset) * 1000 / np.maximum(elapsed_ms, 1)
    is_known = ends.sampled_at(rows, sampled_at_ms) & (elapsed_ms >= MIN_SPAN_MS)
    return np.where(is_known, rates, np.nan)


def known_produce_rates(ends: SampledOffsets, sampled_at_ms: int) -> Mapping[TopicPartition, float]:
    """Return the produce rate of each topic partition. Partitions with an unknown rate are absent.

    >>> ends = SampledOffsets(limit=60)
    >>> for offset, at_ms in [(100, 0), (700, 60_000)]:
    ...     _ = ends.add({("orders", 0): offset}, at_ms)
    >>> known_produce_rates(ends, 60_000)
    {('orders', 0): 10.0}
    """
    rates = produce_rates(ends, sampled_at_ms)
    known = np.flatnonzero(~np.isnan(rates))
    topics, partitions = ends.names()
    named = zip(topics.take(known).to_pylist(), partitions[known].tolist(), strict=True)
    return dict(zip(named, rates[known].tolist(), strict=True))


def rates(report: LagReport, ends: SampledOffsets, consumed: Float64Array | None) -> pa.Table:
    """Return both rates of each row of the report (RATES_SCHEMA, rule 9). `ends` must contain the report's sample."""
    partitions = report.partitions
    rows = ends.rows(partitions["topic"].combine_chunks(), partitions["partition"].to_numpy())
    produced = np.append(produce_rates(ends, report.sampled_at_ms), np.nan)[rows]  # NO_ROW selects the last entry
    consumed = np.full(len(rows), np.nan) if consumed is None else consumed
    reasons = partitions["unknown_reason"].combine_chunks()
    columns = [_without(reasons, _WITHOUT_CONSUME_RATE, consumed), _without(reasons, _WITHOUT_PRODUCE_RATE, produced)]
    return pa.table(columns, schema=RATES_SCHEMA)


def _without(reasons: pa.Array, unknown: pa.Array, rates: Float64Array) -> pa.Array:
    """Return the rates. A rate is null if it is NaN, or if the row's reason is in `unknown`."""
    is_unknown = pc.is_in(reasons, value_set=unknown).to_numpy(zero_copy_only=False)
    return pa.array(rates, mask=is_unknown | np.isnan(rates))


def catch_up_seconds(lag: pa.Array, consumed: pa.Array, produced: pa.Array) -> pa.Array:
    """Return the time to catch up in seconds (rule 11). All columns have the same length.

    >>> catch_up_seconds(pa.array([600, 600, 0]), pa.array([30.0, 10.0, 9.0]), pa.array([10.0, 30.0, 9.0])).to_pylist()
    [30.0, None, None]
    """
    gain = pc.subtract(consumed, produced)
    is_shrinking = pc.greater(gain, pc.multiply(pc.max_element_wise(consumed, produced), MIN_GAIN))
    return pc.if_else(pc.and_(is_shrinking, pc.greater(lag, 0)), pc.divide(lag.cast(pa.float64()), gain), None)
