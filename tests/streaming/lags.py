"""Evaluated lag, for tests that use it as input."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streaming.evaluation.lag.lag import ClusterSample, lag_report
from streaming.evaluation.lag.lag_evaluation import LagEvaluation, evaluate_lag
from streaming.evaluation.lag.lag_seconds import END_OFFSET_POINTS
from streaming.evaluation.lag.rates import CommitPoints
from streaming.evaluation.lag.retention.lost_records import LOG_START_POINTS
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets


def evaluated_lag(commits: pa.Table, sample: ClusterSample) -> LagEvaluation:
    """Return the evaluation of the first sample. It has no status, because no earlier commits are known."""
    ends, starts = SampledOffsets(END_OFFSET_POINTS), SampledOffsets(LOG_START_POINTS)
    ends.add(sample.end_offsets, sample.sampled_at_ms)
    starts.add(sample.log_start_offsets, sample.sampled_at_ms)
    return evaluate_lag(lag_report(commits, sample), ends, starts, None, pa.nulls(commits.num_rows, pa.int64()))


def lag_after_a_minute(commits: pa.Table, sample: ClusterSample) -> LagEvaluation:
    """Return the evaluation of the second sample.

    In the minute before it, producers wrote 15 records to each partition, and the group committed 30 records.
    """
    before_ms, now_ms = sample.sampled_at_ms - 60_000, sample.sampled_at_ms
    ends, starts = SampledOffsets(END_OFFSET_POINTS), SampledOffsets(LOG_START_POINTS)
    ends.add({partition: max(0, end - 15) for partition, end in sample.end_offsets.items()}, before_ms)
    ends.add(sample.end_offsets, now_ms)
    starts.add(sample.log_start_offsets, now_ms)
    points, rows = CommitPoints(), np.arange(commits.num_rows)
    offsets, times_ms = commits["committed_offset"].to_numpy(), commits["commit_timestamp_ms"].to_numpy()
    points.add(rows, np.maximum(offsets - 30, 0), times_ms - 60_000, before_ms, np.full(len(rows), before_ms))
    points.add(rows, offsets, times_ms, now_ms, np.full(len(rows), now_ms))
    report, read_up_to_ms = lag_report(commits, sample), np.full(len(rows), now_ms)
    consumed = points.rates(rows, read_up_to_ms)
    return evaluate_lag(report, ends, starts, None, pa.array(read_up_to_ms), consumed=consumed)
