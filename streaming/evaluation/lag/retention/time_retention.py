"""Estimate the time until Kafka deletes the next record of a group because of `retention.ms`.

The next record is the record that the group reads next. The age of the next record is the lag in seconds
(`lag_seconds.py`). Rules:

1. A topic deletes records by time if its `cleanup.policy` contains `delete` and its `retention.ms` is not -1. For these
   topics, the estimate is `retention.ms` minus the age, but never below 0. For all other topics, the estimate is null.
   Kafka deletes a whole segment when the newest record of the segment is older than `retention.ms`. So the real loss is
   later than the estimate, by at most the time that the segment covers.
2. If the age is only a lower bound, the record may be older, so the estimate is unknown. Exception: if the lower bound
   has reached `retention.ms`, the estimate is 0.
3. If the settings of the topic are unknown, the estimate is unknown.
4. If the topic never deletes records because of its size (`retention.bytes` is -1, or `cleanup.policy` does not contain
   `delete`), only this estimate counts. Then the rate of the log start offset (`lost_records.py`) does not apply,
   because the rate describes records of an earlier time, or requests to delete records. Exception: if the topic deletes
   records by time and the estimate is unknown, the rate applies.

Limits: `retention.bytes` and DeleteRecords can delete the record before the estimated time. Kafka uses the timestamps
of the records. So if a producer writes timestamps in the past, Kafka also deletes its records before the estimated
time. The error of the age (`within_seconds`) is also the error of the estimate.

Source: Kafka, `UnifiedLog.deleteRetentionMsBreachedSegments`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.big_endian import BoolArray
from streaming.evaluation.lag.lag_seconds import AT_LEAST

RetentionMs = Mapping[str, int]
"""`retention.ms` of the topics that delete records by time. A topic with unknown settings is absent."""


def is_only_by_time(
    topics: pa.ChunkedArray, left: pa.ChunkedArray, retention_ms: RetentionMs, without_size_limit: Collection[str]
) -> BoolArray:
    """Return True for each row to which the rate of the log start offset does not apply (rule 4).

    `left` is the result of `seconds_left`. `without_size_limit` are the topics that never delete records because of
    their size.

    >>> topics, left = pa.chunked_array([["orders", "orders", "endless"]]), pa.chunked_array([[60.0, None, None]])
    >>> is_only_by_time(topics, left, {"orders": 3_600_000}, ["orders", "endless"]).tolist()
    [True, False, True]
    """
    unlimited, by_time = (pa.array(sorted(names), pa.string()) for names in (without_size_limit, retention_ms))
    is_estimated = pc.or_(pc.is_valid(left), pc.invert(pc.is_in(topics, value_set=by_time)))
    only: BoolArray = pc.and_(pc.is_in(topics, value_set=unlimited), is_estimated).to_numpy()
    return only


def seconds_left(topics: pa.ChunkedArray, lag_seconds: pa.Table, retention_ms: RetentionMs) -> pa.ChunkedArray:
    """Return the estimate of each row in seconds. `lag_seconds` has LAG_SECONDS_SCHEMA.

    The estimate is null if it is unknown, or if the topic does not delete records by time.

    >>> ages = pa.table({"lag_seconds": [600.0, 5.0], "lag_seconds_kind": ["exact", "exact"]})
    >>> seconds_left(pa.chunked_array([["orders", "compacted"]]), ages, {"orders": 3_600_000}).to_pylist()
    [3000.0, None]
    """
    encoded = topics.combine_chunks().dictionary_encode()
    limits_ms = pa.array(map(retention_ms.get, encoded.dictionary.to_pylist()), pa.int64()).take(encoded.indices)
    left = pc.subtract(pc.divide(limits_ms.cast(pa.float64()), 1000.0), lag_seconds["lag_seconds"])
    is_bound = pc.equal(lag_seconds["lag_seconds_kind"].cast(pa.string()), AT_LEAST)
    is_open = pc.and_(is_bound, pc.greater(left, 0.0))
    return pc.if_else(is_open, None, pc.max_element_wise(left, 0.0, skip_nulls=False))
