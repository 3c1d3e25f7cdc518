"""Compute the lag in seconds: the age of the record that a group reads next.

g is the offset of that record (`next_offset`). The record was
written when the end offset passed g. Only samples of end offsets are known, so this moment is between two samples. Its
time is interpolated. The first rule that applies gives the result:

1. `unknown`: the lag in records is unknown (`lag.py` shows the reason), or the stored last end offset is not from this
   sample.
2. `exact`, 0: g is the end offset. No record waits.
3. `at_least`: g is before the oldest point. So the record at g was written before that point was sampled. The age of
   the oldest point is a lower bound. The monitor never extrapolates. kafka-lag-exporter extrapolates. It showed a lag
   of three years for a group that read old records again (issue 496). With only the first sample, the result is "at
   least 0 s". So the lag is not missing in the first minutes.
4. `exact`: with (o1, t1) the last point at or below g and (o2, t2) the next one,

       t = t2 - (o2 - g) * (t2 - t1) / (o2 - o1)        lag = at - t

   If several samples have the offset o1, t1 is the time of the last of these samples, because the record at g was
   written after it.

The end offset never decreases between two points. So the true time is also in (t1, t2], and `within_seconds` = t2 -
t1 bounds the error. With 60 points sampled every 5 s, the error is at most 5 s for a lag below half a minute. After the
monitor has run for an hour, the error is at most an eighth of the lag. After a day, it is at most a quarter.
`offset_points.py` describes how points are removed. Seconds are never negative, NaN or infinite. kafka-lag-exporter can
show such values (issue 138; its own sample alert compares with `Inf`).

Source of the method: kafka-lag-exporter, `LookupTable.scala` and `ConsumerGroupCollector.scala`. The tests use the
published examples in `LookupTableSpec.scala`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streaming.combine.wire import BoolArray, Int64Array
from streaming.evaluation.lag.lag import LagReport
from streaming.evaluation.lag.offset_points import OffsetPoints
from streaming.evaluation.lag.sampled_offsets import SampledOffsets

END_OFFSET_POINTS = 60
"""Points per topic partition. They use 960 bytes and cover a week.

The gap between two points is a quarter of their age.
"""

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

Float64Array = npt.NDArray[np.float64]


def lag_seconds(lag: LagReport, ends: SampledOffsets) -> pa.Table:
    """Return the lag in seconds of each row of the report (LAG_SECONDS_SCHEMA).

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
    """Return three columns: kind, seconds and width of the interval.

    Each row's newest point is the end offset that was sampled at `at_ms`.
    """
    left = points.last_at_or_below(rows, next_offsets)
    is_older = left < 0
    left = np.maximum(left, 0)
    age, width = _interpolate(points, rows, next_offsets, left, np.minimum(left + 1, points.counts[rows] - 1), at_ms)
    oldest_age = at_ms - points.times_ms[rows, 0]
    kind = np.where(is_older, _AT_LEAST, _EXACT).astype(np.int8)
    return kind, np.where(is_older, oldest_age, age) / 1000, width / 1000


def _interpolate(  # noqa: PLR0913, PLR0917 - one argument per column
    points: OffsetPoints,
    rows: Int64Array,
    next_offsets: Int64Array,
    left: Int64Array,
    right: Int64Array,
    at_ms: int,
) -> tuple[Float64Array, Float64Array]:
    """Return the age of the next offsets between two points, and the time between the points, in milliseconds.

    If the next offset is the end offset, both points are the newest point (rule 2). Then both results are 0.
    """
    left_time, right_time = points.times_ms[rows, left], points.times_ms[rows, right]
    right_offset = points.offsets[rows, right]
    rise = (right_offset - points.offsets[rows, left]).astype(np.float64)
    width = (right_time - left_time).astype(np.float64)
    share = np.divide(right_offset - next_offsets, rise, out=np.zeros(len(rows)), where=rise > 0)
    return (at_ms - right_time) + share * width, width


def lowest_end_offset_since(ends: SampledOffsets, rows: Int64Array, since_ms: int) -> tuple[Int64Array, BoolArray]:
    """Return for each row of `ends` the lowest end offset sampled since `since_ms`, and whether there is one.

    End offsets never decrease, so the first end offset is the lowest. Burrow remembers ten end offsets, requested every
    10 s. Burrow never shows STOP for a group that has read up to one of these end offsets (rule 2 of `status.py`).
    """
    if not len(ends):
        return np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.bool_)
    first = ends.points.first_since(rows, since_ms)
    is_sampled = (rows >= 0) & (first < ends.points.counts[rows])
    return ends.points.offsets[rows, np.minimum(first, ends.points.limit - 1)], is_sampled
