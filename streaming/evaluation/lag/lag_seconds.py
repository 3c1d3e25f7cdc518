"""Compute the lag in seconds: the age of the record that a group reads next.

g is the offset of the record that the group reads next (`next_offset`). The record was written when the end offset
became greater than g. The monitor knows only samples of the end offset. So the monitor interpolates the write time
between two samples. The first rule that applies determines the result:

1. `unknown`: the lag in records is unknown (see `lag.py`). The lag is also unknown if the newest end offset is not from
   the sample of the report.
2. `exact` with the lag 0: g is the end offset. The group has read everything.
3. `at_least`: g is lower than the offset of the oldest point. So the record at g was written before the oldest point
   was sampled. The age of the oldest point is a lower bound of the lag in seconds. After the first sample, the lag is
   "at least 0 s". The monitor never extrapolates. The tool kafka-lag-exporter extrapolates, and showed a lag of three
   years (issue 496).
4. This rule has no result. It defines the values of rules 5 and 6. (o1, t1) is the last point whose offset is at most
   g. (o2, t2) is the next point. `at` is the time of the sample from which the report was computed. If several
   samples have the offset o1, t1 is the time of the last sample with this offset. The record at g was written after t1,
   and not later than t2.
5. `at_least`: t2 - t1 is more than MAX_STEP_MS, and also more than MAX_STEP_SHARE * (at - t2). Usually, the monitor
   took no samples between t1 and t2. A running monitor samples at least every 60 s. So it is unknown when the record
   was written in this time. The lower bound is at - t2. For example, the monitor was off for three days, and the first
   record was written one second before the first new sample. Then the lag is "at least 0 s", and not three days.
6. `exact` in all other cases:

       t = t2 - (o2 - g) * (t2 - t1) / (o2 - o1)        lag = at - t

The error is at most `within_seconds` = t2 - t1. With 60 points and a sample every 5 s, the error is at most 5 s for a
lag below 30 s. For a larger lag, the error depends on how long the monitor has sampled. After one hour, the error is
about 1/8 of the lag. After one day, the error is at most 1/4 of the lag. `stored/offset_points.py` describes how points
are removed. Removed points never cause rule 5: after two weeks, t2 - t1 is at most 0.36 * (at - t2).
The lag in seconds is never negative, NaN or infinite. The tool kafka-lag-exporter can show such values (issue 138).

The method comes from `LookupTable.scala` and `ConsumerGroupCollector.scala` in kafka-lag-exporter. The tests use the
examples in `LookupTableSpec.scala`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streaming.combine.big_endian import BoolArray, Float64Array, Int64Array
from streaming.evaluation.lag.lag import LagReport
from streaming.evaluation.lag.stored.offset_points import OffsetPoints
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets

END_OFFSET_POINTS = 60
"""Maximum number of points per topic partition.

These points use 960 bytes and cover a week. The time between two neighbouring points is about a quarter of their age.
"""

MAX_STEP_MS = 100_000
MAX_STEP_SHARE = 0.5
"""Limits of rule 5. Usually, a restart of the monitor takes less time than MAX_STEP_MS."""

UNKNOWN = "unknown"
EXACT = "exact"
AT_LEAST = "at_least"

_KINDS = pa.array([UNKNOWN, EXACT, AT_LEAST])
_UNKNOWN, _EXACT, _AT_LEAST = range(3)

LAG_SECONDS_SCHEMA = pa.schema(
    [
        ("lag_seconds", pa.float64()),
        ("lag_seconds_kind", pa.dictionary(pa.int8(), pa.string())),
        ("within_seconds", pa.float64()),
    ]
)
"""`lag_seconds` is null if the kind is `unknown`. `within_seconds` is null if the kind is not `exact`."""


def lag_seconds(lag: LagReport, ends: SampledOffsets) -> pa.Table:
    """Return the lag in seconds for each row of the report (LAG_SECONDS_SCHEMA).

    `ends` must contain the sample of the report.

    >>> from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample, lag_report
    >>> ends = SampledOffsets(END_OFFSET_POINTS)
    >>> for second, end_offset in enumerate([0, 10, 200, 3000, 40000]):
    ...     _ = ends.add({("orders", 0): end_offset}, second * 1000)
    >>> columns = [["a", "b"], ["orders", "orders"], [0, 0], [1600, 40000], [7, 7]]
    >>> commits = pa.table([pa.array(column) for column in columns], names=LAG_SCHEMA.names[:5])
    >>> answer = lag_seconds(lag_report(commits, ClusterSample(4000, end_offsets={("orders", 0): 40000})), ends)
    >>> answer["lag_seconds"].to_pylist(), answer["lag_seconds_kind"].to_pylist()
    ([1.5, 0.0], ['exact', 'exact'])
    """
    partitions = lag.partitions
    rows = ends.rows(partitions["topic"].combine_chunks(), partitions["partition"].to_numpy())
    is_known = ends.sampled_at(rows, lag.sampled_at_ms) & partitions["lag"].is_valid().to_numpy()
    kind = np.full(len(rows), _UNKNOWN, dtype=np.int8)
    seconds, within = np.zeros(len(rows)), np.zeros(len(rows))
    kind[is_known], seconds[is_known], within[is_known] = _look_up(
        ends.points, rows[is_known], partitions["next_offset"].to_numpy()[is_known], lag.sampled_at_ms
    )
    arrays = [
        pa.array(seconds, mask=kind == _UNKNOWN),
        pa.DictionaryArray.from_arrays(pa.array(kind), _KINDS),
        pa.array(within, mask=kind != _EXACT),
    ]
    return pa.table(arrays, schema=LAG_SECONDS_SCHEMA)


def _look_up(
    points: OffsetPoints, rows: Int64Array, next_offsets: Int64Array, at_ms: int
) -> tuple[npt.NDArray[np.int8], Float64Array, Float64Array]:
    """Return three columns: kind, seconds and `within_seconds`.

    The newest point of each row must be from the sample at `at_ms`. If the next offset is the end offset, `left` and
    `right` are both the newest point, so the seconds are 0 (rule 2).
    """
    last_below = points.last_at_or_below(rows, next_offsets)
    left = np.maximum(last_below, 0)
    right = np.minimum(left + 1, points.counts[rows] - 1)
    right_ms, right_offset = points.times_ms[rows, right], points.offsets[rows, right]
    rise = (right_offset - points.offsets[rows, left]).astype(np.float64)
    width_ms = (right_ms - points.times_ms[rows, left]).astype(np.float64)
    share = np.divide(right_offset - next_offsets, rise, out=np.zeros(len(rows)), where=rise > 0)
    age_ms = (at_ms - right_ms) + share * width_ms
    known_age_ms = at_ms - points.times_ms[rows, np.minimum(last_below + 1, right)]
    is_bound = (last_below < 0) | (width_ms > np.maximum(MAX_STEP_MS, MAX_STEP_SHARE * known_age_ms))
    kind = np.where(is_bound, _AT_LEAST, _EXACT).astype(np.int8)
    return kind, np.where(is_bound, known_age_ms, age_ms) / 1000, width_ms / 1000


def end_offset_at(ends: SampledOffsets, rows: Int64Array, at_ms: Int64Array) -> Int64Array:
    """Return for each row the end offset in the last sample at or before its time. Return -1 if all samples are newer.

    The value is undefined for rows without samples.
    """
    last = ends.points.last_until(rows, at_ms)
    return np.where(last < 0, -1, ends.points.offsets[rows, np.maximum(last, 0)])


def lowest_end_offset_since(ends: SampledOffsets, rows: Int64Array, since_ms: int) -> tuple[Int64Array, BoolArray]:
    """Return for each row the lowest end offset since `since_ms`, and True if there is an end offset since `since_ms`.

    End offsets never decrease, so the first end offset is the lowest.
    """
    if not len(ends):
        return np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.bool_)
    first = ends.points.first_since(rows, since_ms)
    is_sampled = (rows >= 0) & (first < ends.points.counts[rows])
    return ends.points.offsets[rows, np.minimum(first, ends.points.limit - 1)], is_sampled
