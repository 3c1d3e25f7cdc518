"""Committed offsets against end offsets, for all groups at once.

End offsets are sampled after the commits were read, so lag is only ever overstated, never negative. Where the end is
still behind the commit, the topic was deleted and created anew (or lost records): lag is unknown, not 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from streaming.events import TopicMetadata

TopicPartition = tuple[str, int]

LAG_SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("committed_offset", pa.int64()),
        ("commit_timestamp_ms", pa.int64()),
        ("end_offset", pa.int64()),
        ("log_start_offset", pa.int64()),
        ("lag", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class LogEnds:
    """Where one partition of `__consumer_offsets` ends: for everybody, and for readers of committed records only."""

    high_watermark: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class ClusterSample:
    """What the brokers said at one time. What they did not say is absent, never 0.

    `offsets_topic` may miss partitions that had no leader; `offsets_topic_partitions` counts them all.
    """

    sampled_at_ms: int
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    end_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    log_start_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    offsets_topic: Mapping[int, LogEnds] = field(default_factory=dict)
    offsets_topic_partitions: int = 0


@dataclass(frozen=True, slots=True)
class LagReport:
    """Lag at one sample: `partitions` with LAG_SCHEMA."""

    sampled_at_ms: int
    partitions: pa.Table

    def by_group(self) -> Mapping[str, int | None]:
        """The sum over a group's partitions; None where any of them is unknown."""
        grouped = self.partitions.group_by("group_id").aggregate(
            [("lag", "sum", pc.ScalarAggregateOptions(skip_nulls=False))]
        )
        return dict(zip(grouped["group_id"].to_pylist(), grouped["lag_sum"].to_pylist(), strict=True))


def lag_report(commits: pa.Table, sample: ClusterSample) -> LagReport:
    """Lag of every commit (columns of LAG_SCHEMA up to commit_timestamp_ms) by one later sample."""
    topic_partitions = list(zip(commits["topic"].to_pylist(), commits["partition"].to_pylist(), strict=True))
    end = pa.array([sample.end_offsets.get(key) for key in topic_partitions], pa.int64())
    start = pa.array([sample.log_start_offsets.get(key) for key in topic_partitions], pa.int64())
    difference = pc.subtract(end, commits["committed_offset"])
    lag = pc.if_else(pc.greater_equal(difference, 0), difference, pa.scalar(None, pa.int64()))
    named = commits.append_column("end_offset", end).append_column("log_start_offset", start)
    return LagReport(sample.sampled_at_ms, named.append_column("lag", lag).cast(LAG_SCHEMA))
