"""Compute the lag of all groups from committed offsets and end offsets.

The monitor reads commits first and requests end offsets later. So the lag can be too high, but the lag is never
negative. An unknown lag is null, and `unknown_reason` is the first of these reasons that applies:

1. `blocked`: an open transaction in the group's partition of `__consumer_offsets` hides later commits. The monitor
   reads with read_committed, so the monitor receives no record after the start of the transaction. The transaction also
   hides the commits of all other groups in the same partition. This reason applies only if the transaction hides
   records that the previous sample already showed. A transaction that began later hides at most the commits of one
   sampling interval. Exactly-once clients open such short transactions all the time. After the end of the transaction,
   this reason applies until the query has read the records that the transaction has hidden. If a sample does not
   contain the partition count of `__consumer_offsets` meanwhile, this reason applies to all groups.
2. `commits_refused`: the brokers refuse to return the group's commits, for example because the DESCRIBE permission for
   the group was removed. So the known commits can be old. This reason applies only in the polling mode.
3. `topic_deleted`: the broker does not know the topic.
4. `partition_deleted`: the topic was created again, and the new topic does not have this partition.
5. `no_end_offset`: the end offset was not sampled, for example because the partition has no leader.
6. `end_before_commit`: the committed offset is greater than the end offset. There are three possible causes. The topic
   was deleted and created again. The topic lost records in an unclean election. A client committed an offset that never
   existed. In all three cases, kafka_exporter shows a negative lag (issue 437). A negative lag breaks autoscaling.
7. `maybe_only_markers`: all unread offsets may be transaction markers or records of aborted transactions. The monitor
   could not read the unread offsets, or found only records of aborted transactions (`next_offsets.py`). This reason
   requires that few offsets are unread, or that the topic has transactions.

Lag is counted from `next_offset`. Usually `next_offset` is the committed offset. If no record exists at the committed
offset, `next_offset` is the offset of the first record after the committed offset. So records that retention has
deleted do not count as lag. `unread_offset` is the `next_offset` that the group would have if retention had deleted
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from assignors import TopicPartition
from assignors.coordinator import coordinator_partition
from streaming.evaluation.lag.broker_clocks import ClockOffset
from streaming.events import TopicMetadata

BLOCKED = "blocked"
COMMITS_REFUSED = "commits_refused"
TOPIC_DELETED = "topic_deleted"
PARTITION_DELETED = "partition_deleted"
NO_END_OFFSET = "no_end_offset"
END_BEFORE_COMMIT = "end_before_commit"
MAYBE_ONLY_MARKERS = "maybe_only_markers"
_SAMPLE_REASONS = (BLOCKED, COMMITS_REFUSED, TOPIC_DELETED, PARTITION_DELETED, NO_END_OFFSET, END_BEFORE_COMMIT)
"""Reasons for an unknown lag that need only the commits and the sample, in the order of the rules."""
NO_FRESH_SAMPLE = "no_fresh_sample"
"""Reason for an unknown lag of a group: the last sample is too old, or there is no sample."""
LOG_NOT_READ = "log_not_read"
"""Reason for an unknown lag of a group: the cluster is not ready, so new commits can be missing."""

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
        ("unread_offset", pa.int64()),
        ("record_offset", pa.int64()),
        ("has_transactions", pa.bool_()),
        ("is_blocked", pa.bool_()),
    ]
)
"""Exactly one of `lag` and `unknown_reason` is null. `next_offsets.py` describes the last five columns."""


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The end of one `__consumer_offsets` partition.

    `sampled_at_ms` is the time of the request on the leader's clock. If None, use `ClusterSample.sampled_at_ms`.
    """

    high_watermark: int
    last_stable_offset: int
    log_start: int | None = None
    sampled_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterSample:
    """The responses of the brokers to one sample.

    The mappings do not contain keys with an unknown value. Partitions of `__consumer_offsets` without a leader can be
    missing in `offsets_topic`. `offsets_topic_partitions` is the partition count of `__consumer_offsets`.
    `offsets_topic_id` is None if the brokers have no topic ids (before 2.8). `brokers` is the number of brokers.
    `missing_topics` contains the topics that provably do not exist (rule 22 of `missing_topics.py`).

    All times are the cluster's time: the monitor's time plus `clock_correction_ms` (`broker_clocks.py`). If
    `is_clock_known` is False, the correction is 0, and the times can be wrong. `clock_base_ms` is the cluster's time
    minus the time since the boot of the monitor's machine. If it differs between two samples, the cluster's time had a
    step of this difference. `clock_offsets` contains the known clock offsets by broker. `newest_record_ms` is the
    latest time of all records that this process has read. `short_transactions` contains the partitions of
    `__consumer_offsets` whose open transaction began after the previous sample (rule 1). `unread_hidden_ends` maps
    partitions of `__consumer_offsets` to the end of the records that an open transaction has hidden, if the query has
    not read these records yet (`with_hidden_records`). `refused_groups` are the groups of rule 2.
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
    is_clock_known: bool = False
    clock_base_ms: int = 0
    clock_offsets: Mapping[int, ClockOffset] = field(default_factory=dict)
    newest_record_ms: int | None = None
    missing_topics: frozenset[str] = frozenset()
    short_transactions: frozenset[int] = frozenset()
    unread_hidden_ends: Mapping[int, int] = field(default_factory=dict)
    refused_groups: frozenset[str] = frozenset()

    @property
    def monitor_ms(self) -> int:
        """The time of the sample on the monitor's own clock, without the correction."""
        return self.sampled_at_ms - self.clock_correction_ms

    @property
    def leaders_ahead_ms(self) -> Mapping[int, int]:
        """For each `__consumer_offsets` partition: the time of the leader's clock minus the cluster's time."""
        return {
            number: ends.sampled_at_ms - self.sampled_at_ms
            for number, ends in self.offsets_topic.items()
            if ends.sampled_at_ms is not None
        }

    @property
    def deletion_time_ms(self) -> int | None:
        """The current time for the deletion of old values, or None if nothing may be deleted.

        If the clocks differ by days, it is unknown which clock is wrong. So a value is deleted only if it is old by the
        cluster's time, by the monitor's time and by the time of the newest record. The time of the newest record is
        necessary, because after a start, the cluster's time can be as wrong as the monitor's clock. But a broker's
        clock has reached the time of the newest record.
        """
        if self.newest_record_ms is None:
            return None
        return min(self.sampled_at_ms, self.monitor_ms, self.newest_record_ms)

    @property
    def leaderless_offsets_topic_partitions(self) -> int:
        """The number of partitions of `__consumer_offsets` without a leader, or 0 if the topic is unknown."""
        return max(0, self.offsets_topic_partitions - len(self.offsets_topic_leaders))

    def is_empty(self, partition: TopicPartition) -> bool:
        """Return True if the log of the partition provably contains no records."""
        end = self.end_offsets.get(partition)
        return end is not None and end == self.log_start_offsets.get(partition)


@dataclass(frozen=True, slots=True)
class LagReport:
    """The lag at one sample. `partitions` has LAG_SCHEMA."""

    sampled_at_ms: int
    partitions: pa.Table


def lag_report(commits: pa.Table, sample: ClusterSample) -> LagReport:
    """Compute the lag of each commit. The sample must be later than all commits.

    `commits` has the columns of LAG_SCHEMA up to `commit_timestamp_ms`.

    >>> columns = [["g", "g"], ["orders", "gone"], [0, 0], [4, 4], [7, 7]]
    >>> commits = pa.table([pa.array(column) for column in columns], names=LAG_SCHEMA.names[:5])
    >>> sample = ClusterSample(1_000, {"gone": TopicMetadata(None, 1_000)}, {("orders", 0): 10}, {("orders", 0): 3})
    >>> lag_report(commits, sample).partitions.select(["lag", "unknown_reason"]).to_pydict()
    {'lag': [6, None], 'unknown_reason': [None, 'topic_deleted']}
    """
    topic_partitions = list(zip(commits["topic"].to_pylist(), commits["partition"].to_pylist(), strict=True))
    end = pa.array([sample.end_offsets.get(key) for key in topic_partitions], pa.int64())
    start = pa.array([sample.log_start_offsets.get(key) for key in topic_partitions], pa.int64())
    reason, committed = _unknown_reason(commits, end, sample), commits["committed_offset"]
    lag = pc.if_else(pc.is_null(reason), pc.subtract(end, committed), pa.scalar(None, pa.int64()))
    no = pa.repeat(False, commits.num_rows)
    columns = [*commits.columns, end, start, lag, reason, *[committed] * 3, no, no]
    names = [*commits.column_names, *LAG_SCHEMA.names[5:]]  # the cast rejects commits with a different column order
    return LagReport(sample.sampled_at_ms, pa.table(columns, names=names).cast(LAG_SCHEMA))


def _unknown_reason(commits: pa.Table, end: pa.Array, sample: ClusterSample) -> pa.ChunkedArray:
    """Return for each row the first reason for an unknown lag, or null if the lag is known."""
    # The partition count of a deleted topic is 0. The count of a topic that is not in the sample is null.
    counts = {topic: sampled.partitions or 0 for topic, sampled in sample.topics.items()}
    partitions = _map_names(commits["topic"], counts.get, pa.int32())
    applies = [
        _map_names(commits["group_id"], blocked_groups(sample), pa.bool_()),
        _map_names(commits["group_id"], sample.refused_groups.__contains__, pa.bool_()),
        pc.equal(partitions, 0),
        pc.fill_null(pc.greater_equal(commits["partition"], partitions), fill_value=False),
        pc.is_null(end),
        pc.fill_null(pc.less(end, commits["committed_offset"]), fill_value=False),
    ]
    return pc.case_when(pc.make_struct(*applies), *_SAMPLE_REASONS)


def blocked_groups(sample: ClusterSample) -> Callable[[str], bool]:
    """Return a function that checks whether a group belongs to one of the `blocked_partitions`.

    If the partition count of `__consumer_offsets` is unknown, each group may belong to one of them.
    """
    blocked, partitions = blocked_partitions(sample), sample.offsets_topic_partitions
    if not blocked or not partitions:
        return lambda group_id: bool(blocked)  # noqa: ARG005 - the result is the same for all groups
    return cache(lambda group_id: coordinator_partition(group_id, partitions) in blocked)


def blocked_partitions(sample: ClusterSample) -> frozenset[int]:
    """Return the numbers of the `__consumer_offsets` partitions in which the query cannot know all records (rule 1)."""
    return frozenset(_hidden_ends(sample).keys() | sample.unread_hidden_ends.keys())


def _hidden_ends(sample: ClusterSample) -> Mapping[int, int]:
    """Return the high watermark of each `__consumer_offsets` partition with an open transaction that is not short."""
    return {
        number: end.high_watermark
        for number, end in sample.offsets_topic.items()
        if end.high_watermark > end.last_stable_offset and number not in sample.short_transactions
    }


def with_hidden_records(
    sample: ClusterSample, before: ClusterSample | None, positions: Mapping[int, int]
) -> ClusterSample:
    """Return the sample with `short_transactions` and `unread_hidden_ends`. `before` is the previous sample, if any.

    `positions` are the query's positions before the sample. Without `unread_hidden_ends`, the end of a long transaction
    would give all groups of its partition a lag as long as the transaction. So the partition stays blocked until the
    query has read all records up to the high watermark of the last sample that showed the transaction. Later records do
    not count. So the usual delay of the query never blocks a partition. If the log was truncated, only the records that
    still exist count.

    >>> during, after = (ClusterSample(0, offsets_topic={0: LogEnds(900, stable)}) for stable in (100, 900))
    >>> [dict(with_hidden_records(after, during, {0: at}).unread_hidden_ends) for at in (100, 900)]
    [{0: 900}, {}]
    """
    if before is None:
        return sample
    hidden_ends = {**before.unread_hidden_ends, **_hidden_ends(before)}
    for number, ends in sample.offsets_topic.items():
        if number in hidden_ends:
            hidden_ends[number] = min(hidden_ends[number], ends.last_stable_offset)
    unread = {number: end for number, end in hidden_ends.items() if positions.get(number, 0) < end}
    ends_before = before.offsets_topic
    short = frozenset(
        number
        for number, ends in sample.offsets_topic.items()
        if number in ends_before and ends_before[number].high_watermark <= ends.last_stable_offset < ends.high_watermark
    )
    return replace(sample, short_transactions=short, unread_hidden_ends=unread)


def _map_names(names: pa.ChunkedArray, function: Callable[[str], object], result_type: pa.DataType) -> pa.Array:
    """Return the result of `function` for each row. The function is called only once per distinct name."""
    encoded = names.combine_chunks().dictionary_encode()
    return pa.array(map(function, encoded.dictionary.to_pylist()), result_type).take(encoded.indices)
