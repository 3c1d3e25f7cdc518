"""Lag: committed against end offsets; never negative, never a guess."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.coordinator import coordinator_partition
from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample, LagReport, LogEnds, lag_report
from streaming.events import TopicMetadata

COMMITS_SCHEMA = pa.schema(list(LAG_SCHEMA)[:5])


def report(commits: dict[tuple[str, str, int], int], ends: dict[tuple[str, int], int]) -> LagReport:
    """Return the lag of commits by (group, topic, partition) at given end offsets."""
    return report_of(commits, ClusterSample(1_000, end_offsets=ends, log_start_offsets=dict.fromkeys(ends, 3)))


def report_of(commits: dict[tuple[str, str, int], int], sample: ClusterSample) -> LagReport:
    """Return the lag of commits by (group, topic, partition) at a sample."""
    rows = [
        {
            "group_id": group,
            "topic": topic,
            "partition": partition,
            "committed_offset": offset,
            "commit_timestamp_ms": 7,
        }
        for (group, topic, partition), offset in commits.items()
    ]
    return lag_report(pa.Table.from_pylist(rows, schema=COMMITS_SCHEMA), sample)


@pytest.mark.parametrize(
    ("committed", "end", "lag", "why"),
    [
        (4, 10, 6, "six records to go"),
        (10, 10, 0, "caught up: 0, and a series"),
        (0, 0, 0, "an empty topic"),
        (11, 10, None, "deleted and created anew: kafka_exporter 437 showed a negative lag and broke autoscaling"),
        (10, 0, None, "created anew and still empty"),
        (4, None, None, "end offset not sampled: neither 0 nor the last value"),
        (0, 2**63 - 1, 2**63 - 1, "the longest log there can be"),
        (2**63 - 1, 0, None, "a hostile commit"),
    ],
)
def test_lag_is_the_difference_or_unknown(committed: int, end: int | None, lag: int | None, why: str) -> None:
    ends = {} if end is None else {("orders", 0): end}
    (row,) = report({("g", "orders", 0): committed}, ends).partitions.to_pylist()
    assert (row["lag"], row["end_offset"]) == (lag, end), why
    assert row["log_start_offset"] == (None if end is None else 3)


OFFSETS_PARTITIONS = 50
GROUP_PARTITION = coordinator_partition("g", OFFSETS_PARTITIONS)
OTHER_PARTITION = (GROUP_PARTITION + 1) % OFFSETS_PARTITIONS


@pytest.mark.parametrize(
    ("topic", "end", "held", "reason", "why"),
    [
        (TopicMetadata(1, 5), 10, None, None, "known"),
        (None, 10, None, None, "a topic whose metadata was not asked for has an end all the same"),
        (TopicMetadata(1, 5), 10, GROUP_PARTITION, "blocked", "rule 1: what was committed since is not handed out"),
        (TopicMetadata(1, 5), 10, OTHER_PARTITION, None, "rule 1: another partition's transaction hides nothing here"),
        (TopicMetadata(None, 5), None, None, "topic_deleted", "rule 2"),
        (TopicMetadata(None, 5), None, GROUP_PARTITION, "blocked", "1 before 2: the commit may be deleted as well"),
        (TopicMetadata(0, 5), None, None, "topic_deleted", "rule 2: being deleted, no partition is left"),
        (TopicMetadata(1, 5), None, None, "no_end_offset", "rule 4: no leader"),
        (None, None, None, "no_end_offset", "rule 4: nothing is known, and nothing claimed"),
        (TopicMetadata(1, 5), 3, None, "end_before_commit", "rule 5: deleted and created anew"),
    ],
)
def test_an_unknown_lag_says_why(
    topic: TopicMetadata | None, end: int | None, held: int | None, reason: str | None, why: str
) -> None:
    """Unknown is absent plus a reason, never negative."""
    sample = ClusterSample(
        1_000,
        topics={} if topic is None else {"orders": topic},
        end_offsets={} if end is None else {("orders", 0): end},
        offsets_topic={number: LogEnds(7, 7 - (number == held)) for number in range(OFFSETS_PARTITIONS)},
        offsets_topic_partitions=OFFSETS_PARTITIONS,
    )
    lag = report_of({("g", "orders", 0): 4}, sample)
    (row,) = lag.partitions.to_pylist()
    assert row["unknown_reason"] == reason, why
    assert row["lag"] == (6 if reason is None else None)


def test_a_partition_the_topic_no_longer_has_says_so() -> None:
    """Deleted and created anew with fewer partitions: there is nobody to ask for its end."""
    sample = ClusterSample(1_000, topics={"orders": TopicMetadata(2, 5)}, end_offsets={("orders", 1): 9})
    commits = {("g", "orders", number): 4 for number in (1, 2, 7)} | {("h", "orders", 0): 4}
    lag = report_of(commits, sample)
    reasons = dict(
        zip(lag.partitions["partition"].to_pylist(), lag.partitions["unknown_reason"].to_pylist(), strict=True)
    )
    assert reasons == {0: "no_end_offset", 1: None, 2: "partition_deleted", 7: "partition_deleted"}


def test_no_commits_give_an_empty_report() -> None:
    empty = report({}, {("orders", 0): 10})
    assert empty.partitions.schema == LAG_SCHEMA


COMMITTED = st.dictionaries(
    st.tuples(st.sampled_from(["g", "h"]), st.sampled_from(["a", "b"]), st.integers(0, 2)), st.integers(0, 2**63 - 1)
)
ENDS = st.dictionaries(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2)), st.integers(0, 2**63 - 1))


@given(COMMITTED, ENDS)
def test_lag_is_never_negative_and_known_just_where_the_end_is_beyond_the_commit(
    commits: dict[tuple[str, str, int], int], ends: dict[tuple[str, int], int]
) -> None:
    partitions = report(commits, ends).partitions
    assert partitions.schema == LAG_SCHEMA
    for row in partitions.to_pylist():
        end = ends.get((row["topic"], row["partition"]))
        known = end is not None and end >= row["committed_offset"]
        assert row["lag"] == (end - row["committed_offset"] if end is not None and known else None)
        assert (row["lag"] is None) != (row["unknown_reason"] is None), "a lag or a reason"
