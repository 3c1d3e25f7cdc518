"""Committed offsets against end offsets, for all groups at once.

End offsets are sampled after the commits were read, so lag is only ever overstated, never negative. Where it is not
known it is null, with the first reason that applies:

1. `blocked`: an open transaction in the group's partition of `__consumer_offsets` hides what was committed since.
   Under read_committed nothing behind it is handed out, other groups' commits included.
2. `topic_deleted`: the broker knows no such topic.
3. `partition_deleted`: the topic has fewer partitions; it was deleted and created anew.
4. `no_end_offset`: not sampled, because the partition has no leader or was not asked for.
5. `end_before_commit`: the topic was deleted and created anew, or lost records in an unclean election, or somebody
   committed an offset that never was. kafka_exporter shows a negative lag (issue 437), which breaks autoscaling.
6. `maybe_only_markers`: the few offsets that are left may be transaction markers, which no consumer reads, and the
   monitor could not look; or it did, and saw records of aborted transactions alone (`next_offsets.py`).

Lag is counted from `next_offset`: the committed offset, or the first record after it where it is known that no record
stands between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial

import pyarrow as pa
import pyarrow.compute as pc

from assignors.coordinator import coordinator_partition
from streaming.evaluation.lag.broker_clocks import ClockOffset
from streaming.events import TopicMetadata

TopicPartition = tuple[str, int]

BLOCKED = "blocked"
TOPIC_DELETED = "topic_deleted"
PARTITION_DELETED = "partition_deleted"
NO_END_OFFSET = "no_end_offset"
END_BEFORE_COMMIT = "end_before_commit"
MAYBE_ONLY_MARKERS = "maybe_only_markers"
_REASONS_OF_A_SAMPLE = (BLOCKED, TOPIC_DELETED, PARTITION_DELETED, NO_END_OFFSET, END_BEFORE_COMMIT)
UNKNOWN_REASONS = (*_REASONS_OF_A_SAMPLE, MAYBE_ONLY_MARKERS)
"""Why a lag is not known, in the order of the rules."""

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
        ("unknown_reason", pa.string()),
        ("next_offset", pa.int64()),
        ("is_record", pa.bool_()),
        ("is_aborted", pa.bool_()),
        ("is_blocked", pa.bool_()),
    ]
)
"""`lag` or `unknown_reason` is null, never both and never neither. The last four are those of `next_offsets.py`."""


@dataclass(frozen=True, slots=True)
class LogEnds:
    """Where one partition of `__consumer_offsets` ends: for everybody, and for readers of committed records only.

    `log_start` is where it starts; None where that was not told. `sampled_at_ms` is the time by its leader's clock;
    None where it is that of the sample.
    """

    high_watermark: int
    last_stable_offset: int
    log_start: int | None = None
    sampled_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterSample:
    """What the brokers said at one time. What they did not say is absent, never 0.

    `offsets_topic` may miss partitions that had no leader; `offsets_topic_partitions` counts them all.
    `offsets_topic_id` is None where brokers have no ids (before 2.8). `brokers` counts those the cluster named.

    Times are the cluster's: the monitor's and `clock_correction_ms` (`broker_clocks.py`). `clock_offsets` has those
    that are known, by broker.
    """

    sampled_at_ms: int
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    end_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    log_start_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    offsets_topic: Mapping[int, LogEnds] = field(default_factory=dict)
    offsets_topic_partitions: int = 0
    brokers: int | None = None
    offsets_topic_id: str | None = None
    offsets_topic_leaders: Mapping[int, int] = field(default_factory=dict)
    clock_correction_ms: int = 0
    clock_offsets: Mapping[int, ClockOffset] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LagReport:
    """Lag at one sample: `partitions` with LAG_SCHEMA."""

    sampled_at_ms: int
    partitions: pa.Table


def lag_report(commits: pa.Table, sample: ClusterSample) -> LagReport:
    """Lag of every commit (columns of LAG_SCHEMA up to commit_timestamp_ms) by one later sample.

    >>> columns = [["g", "g"], ["orders", "gone"], [0, 0], [4, 4], [7, 7]]
    >>> commits = pa.table([pa.array(column) for column in columns], names=LAG_SCHEMA.names[:5])
    >>> sample = ClusterSample(1_000, {"gone": TopicMetadata(None, 1_000)}, {("orders", 0): 10}, {("orders", 0): 3})
    >>> lag_report(commits, sample).partitions.select(["lag", "unknown_reason"]).to_pydict()
    {'lag': [6, None], 'unknown_reason': [None, 'topic_deleted']}
    """
    topic_partitions = list(zip(commits["topic"].to_pylist(), commits["partition"].to_pylist(), strict=True))
    end = pa.array([sample.end_offsets.get(key) for key in topic_partitions], pa.int64())
    start = pa.array([sample.log_start_offsets.get(key) for key in topic_partitions], pa.int64())
    reason = _unknown_reason(commits, end, sample)
    lag = pc.if_else(pc.is_null(reason), pc.subtract(end, commits["committed_offset"]), pa.scalar(None, pa.int64()))
    rows = commits.num_rows
    columns = [end, start, lag, reason, commits["committed_offset"]]
    columns += [pa.repeat(flag, rows) for flag in (True, False, False)]
    names = LAG_SCHEMA.names[len(LAG_SCHEMA) - len(columns) :]
    table = pa.table([*commits.columns, *columns], names=[*commits.column_names, *names])
    return LagReport(sample.sampled_at_ms, table.cast(LAG_SCHEMA))


def _unknown_reason(commits: pa.Table, end: pa.Array, sample: ClusterSample) -> pa.ChunkedArray:
    """The first reason that applies; null where lag is known."""
    partitions = _by_name(commits["topic"], partial(_sampled_partitions, sample), pa.int32())
    applies = [
        _by_name(commits["group_id"], blocked_groups(sample), pa.bool_()),
        pc.equal(partitions, 0),
        pc.fill_null(pc.greater_equal(commits["partition"], partitions), fill_value=False),
        pc.is_null(end),
        pc.fill_null(pc.less(end, commits["committed_offset"]), fill_value=False),
    ]
    return pc.case_when(pc.make_struct(*applies), *_REASONS_OF_A_SAMPLE)


def blocked_groups(sample: ClusterSample) -> Callable[[str], bool]:
    """Tell of a group id whether an open transaction hides what its coordinator wrote last (rule 1)."""
    held = blocked_partitions(sample)
    if not held:
        return lambda group_id: False  # noqa: ARG005 - nobody is
    return cache(lambda group_id: coordinator_partition(group_id, sample.offsets_topic_partitions) in held)


def blocked_partitions(sample: ClusterSample) -> frozenset[int]:
    """Partitions of `__consumer_offsets` in which an open transaction hides what was written last (rule 1)."""
    ends = sample.offsets_topic.items()
    return frozenset(number for number, end in ends if end.high_watermark > end.last_stable_offset)


def _sampled_partitions(sample: ClusterSample, topic: str) -> int | None:
    """How many partitions a topic has, 0 where there is no such topic; None where that was not asked."""
    sampled = sample.topics.get(topic)
    return None if sampled is None else (sampled.partitions or 0)


def _by_name(names: pa.ChunkedArray, answer: Callable[[str], object], answer_type: pa.DataType) -> pa.Array:
    """The answer for each row, asked once a name: groups and topics are few, their partitions are many."""
    encoded = names.combine_chunks().dictionary_encode()
    return pa.array(map(answer, encoded.dictionary.to_pylist()), answer_type).take(encoded.indices)
