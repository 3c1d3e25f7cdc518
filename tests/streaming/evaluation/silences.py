"""Commits and sampled end offsets, for tests of silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from streaming.evaluation.conditions.silence import Silence
from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample, LogEnds, lag_report
from streaming.evaluation.lag.lag_evaluation import LagEvaluation, evaluate_lag
from streaming.evaluation.lag.lag_seconds import END_OFFSET_POINTS
from streaming.evaluation.lag.retention.lost_records import LOG_START_POINTS
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.events import TopicMetadata

MINUTE_MS = 60_000
NOW_MS = 100 * MINUTE_MS
Commits = Mapping[tuple[str, str, int], tuple[int, float]]
"""Committed offset and its age in minutes, by group, topic and partition."""
Ends = Mapping[tuple[str, int], Sequence[int]]
"""End offset of each minute, by topic and partition. The last one is now."""


def busy(minutes: int = 30, a_minute: int = 10) -> Sequence[int]:
    """Return end offsets of a partition that always gets records. The last offset is ten times the minutes."""
    return [a_minute * minute for minute in range(minutes + 1)]


def evaluate_commits(commits: Commits, ends: Ends) -> tuple[LagEvaluation, SampledOffsets]:
    """Return the evaluation of the last sample, and the sampled end offsets."""
    sampled = SampledOffsets(END_OFFSET_POINTS)
    longest = max(map(len, ends.values()), default=1)
    for minutes_ago in range(longest - 1, -1, -1):
        then = {at: of[-1 - minutes_ago] for at, of in ends.items() if len(of) > minutes_ago}
        sampled.add(then, NOW_MS - minutes_ago * MINUTE_MS)
    rows = [(*key, offset, int(NOW_MS - minutes_ago * MINUTE_MS)) for key, (offset, minutes_ago) in commits.items()]
    columns = zip(*rows, strict=True) if rows else [()] * 5
    schema = pa.schema(list(LAG_SCHEMA)[:5])
    table = pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema)
    report = lag_report(table, sample_of({at: of[-1] for at, of in ends.items()}))
    starts = SampledOffsets(LOG_START_POINTS)
    return evaluate_lag(report, sampled, starts, None, pa.nulls(table.num_rows, pa.int64())), sampled


def sample_of(end_offsets: Mapping[tuple[str, int], int]) -> ClusterSample:
    """Return the sample of now. `__consumer_offsets` has one partition, which was read to its end."""
    topics = {topic: TopicMetadata(9, NOW_MS) for topic, _ in end_offsets}
    return ClusterSample(NOW_MS, topics, end_offsets, {}, {0: LogEnds(20, 20)}, 1)


def silence(commits: Commits, ends: Ends, limits: Limits | None = None) -> Silence:
    """Return the silence computed from such a sample."""
    return Silence(*evaluate_commits(commits, ends), limits or Limits())
