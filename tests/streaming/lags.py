"""Evaluated lag, for tests that use it as input."""

from __future__ import annotations

import pyarrow as pa

from streaming.evaluation.lag.lag import ClusterSample, lag_report
from streaming.evaluation.lag.lag_evaluation import LagEvaluation, evaluate_lag
from streaming.evaluation.lag.lag_seconds import END_OFFSET_POINTS
from streaming.evaluation.lag.retention import LOG_START_POINTS
from streaming.evaluation.lag.sampled_offsets import SampledOffsets


def evaluated_lag(commits: pa.Table, sample: ClusterSample) -> LagEvaluation:
    """Return the evaluation of the first sample. It has no status, because no earlier commits are known."""
    ends, starts = SampledOffsets(END_OFFSET_POINTS), SampledOffsets(LOG_START_POINTS)
    ends.add(sample.end_offsets, sample.sampled_at_ms)
    starts.add(sample.log_start_offsets, sample.sampled_at_ms)
    return evaluate_lag(lag_report(commits, sample), ends, starts, None, pa.nulls(commits.num_rows, pa.int64()))
