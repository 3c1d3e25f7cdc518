"""Lag in time: how old the record is that a group reads next.

g is the offset of that record (`next_offset`): the committed offset, or the first record after it. The record was
written when the end offset passed g. End offsets are sampled, so that time is known to lie between two samples, and is
interpolated between them. Rules, first that applies:

1. `unknown`: the lag in records is unknown (`lag.py` says why), or the end offset's points are of another sample.
2. `exact`, 0: g is the end offset. Nothing waits.
3. `at_least`: g lies before the oldest point. Its record was written before that was sampled, so the oldest point's age
   is a bound. It is never extrapolated: kafka-lag-exporter tells a group that reprocesses of a lag of three years
   (issue 496). A first sample says "at least 0 s", it does not keep silent for minutes.
4. `exact`: with (o1, t1) the last point at or below g and (o2, t2) the next one,

       t = t2 - (o2 - g) * (t2 - t1) / (o2 - o1)        lag = at - t

   In a flat run the last time counts: the record at g came after it.

The end offset never falls between two points, so the true time lies in (t1, t2] too: `within_seconds` = t2 - t1 bounds
the error. With 60 points sampled every 5 s it is 5 s below half a minute of lag, an eighth of the lag after one hour of
running and a quarter after a day (`offset_points.py` says how points are thinned). Seconds are never negative, NaN or
infinite: kafka-lag-exporter's are (issue 138; its own sample alert compares with `Inf`).

Source of the method: kafka-lag-exporter, `LookupTable.scala` and `ConsumerGroupCollector.scala`, and its published
examples in `LookupTableSpec.scala`, which are the tests here.
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
"""Points kept a topic partition: 960 bytes, a week at a quarter of the age."""

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
"""`lag_seconds` is null where the kind is `unknown`; `within_seconds` is null where it is not `exact`."""

Float64Array = npt.NDArray[np.float64]


def lag_seconds(lag: LagReport, ends: SampledOffsets) -> pa.Table:
    """Lag in seconds of each row of the report (LAG_SECONDS_SCHEMA); `ends` has taken in the same sample.

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
    """Kind, seconds and width of the interval, for rows whose newest point is the end offset sampled at `at_ms`."""
    left = points.last_at_or_below(rows, next_offsets)
    is_older = left < 0
    left = np.maximum(left, 0)
    age, width = _interpolate(points, rows, next_offsets, left, np.minimum(left + 1, points.counts[rows] - 1), at_ms)
    oldest_age = at_ms - points.times_ms[rows, 0]
    kind = np.where(is_older, _AT_LEAST, _EXACT).astype(np.int8)
    return kind, np.where(is_older, oldest_age, age) / 1000, width / 1000


def _interpolate(  # noqa: PLR0913, PLR0917 - the two points and what lies between, one argument each
    points: OffsetPoints,
    rows: Int64Array,
    next_offsets: Int64Array,
    left: Int64Array,
    right: Int64Array,
    at_ms: int,
) -> tuple[Float64Array, Float64Array]:
    """Age in ms of the next offsets between two points, and the time between the points.

    Where both are the newest point the next offset is the end (rule 2): no time lies between, and the age is 0.
    """
    left_time, right_time = points.times_ms[rows, left], points.times_ms[rows, right]
    right_offset = points.offsets[rows, right]
    rise = (right_offset - points.offsets[rows, left]).astype(np.float64)
    width = (right_time - left_time).astype(np.float64)
    share = np.divide(right_offset - next_offsets, rise, out=np.zeros(len(rows)), where=rise > 0)
    return (at_ms - right_time) + share * width, width


def lowest_end_offset_since(ends: SampledOffsets, rows: Int64Array, since_ms: int) -> tuple[Int64Array, BoolArray]:
    """The lowest end offset sampled at or after a time, per row of `ends`, and where there is one.

    End offsets only grow, so it is the first one sampled since. Burrow remembers ten, polled every 10 s, and calls no
    group stopped that had read up to any of them (rule 2 of `status.py`).
    """
    if not len(ends):
        return np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.bool_)
    first = ends.points.first_since(rows, since_ms)
    is_sampled = (rows >= 0) & (first < ends.points.counts[rows])
    return ends.points.offsets[rows, np.minimum(first, ends.points.limit - 1)], is_sampled
