"""Tests of lag, computed from committed and end offsets. It is never negative and never guessed."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.coordinator import coordinator_partition
from streaming.evaluation.lag.lag import (
    LAG_SCHEMA,
    ClusterSample,
    LagReport,
    LogEnds,
    blocked_groups,
    lag_report,
    with_hidden_records,
)
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
        (4, 10, 6, "six records are left"),
        (10, 10, 0, "caught up: 0 is a known lag"),
        (0, 0, 0, "an empty topic"),
        (11, 10, None, "the topic was recreated: kafka_exporter 437 showed a negative lag and broke autoscaling"),
        (10, 0, None, "the topic was recreated and is still empty"),
        (4, None, None, "the end offset was not sampled: neither 0 nor the last value"),
        (0, 2**63 - 1, 2**63 - 1, "the longest possible log"),
        (2**63 - 1, 0, None, "a hostile commit"),
    ],
)
def test_lag_is_the_difference_or_unknown(committed: int, end: int | None, lag: int | None, why: str) -> None:
    ends = {} if end is None else {("orders", 0): end}
    (row,) = report({("g", "orders", 0): committed}, ends).partitions.to_pylist()
    assert (row["lag"], row["end_offset"]) == (lag, end), why
    assert row["log_start_offset"] == (None if end is None else 3)


def test_commits_with_columns_in_a_different_order_are_rejected() -> None:
    commits = pa.Table.from_pylist([], schema=COMMITS_SCHEMA)
    swapped = commits.select(["group_id", "topic", "partition", "commit_timestamp_ms", "committed_offset"])
    with pytest.raises(ValueError, match="field names"):
        lag_report(swapped, ClusterSample(1_000))


OFFSETS_PARTITIONS = 50
GROUP_PARTITION = coordinator_partition("g", OFFSETS_PARTITIONS)
OTHER_PARTITION = (GROUP_PARTITION + 1) % OFFSETS_PARTITIONS


@pytest.mark.parametrize(
    ("topic", "end", "held", "reason", "why"),
    [
        (TopicMetadata(1, 5), 10, None, None, "known"),
        (None, 10, None, None, "the end offset is enough if the topic's metadata was not requested"),
        (TopicMetadata(1, 5), 10, GROUP_PARTITION, "blocked", "rule 1: later commits are not delivered"),
        (TopicMetadata(1, 5), 10, OTHER_PARTITION, None, "rule 1: the transaction is in a different partition"),
        (TopicMetadata(None, 5), None, None, "topic_deleted", "rule 3"),
        (
            TopicMetadata(None, 5),
            None,
            GROUP_PARTITION,
            "blocked",
            "rule 1 before rule 3: the tombstone of the commit may be hidden too",
        ),
        (
            TopicMetadata(0, 5),
            None,
            None,
            "topic_deleted",
            "rule 3: the topic is being deleted and has no partition left",
        ),
        (TopicMetadata(1, 5), None, None, "no_end_offset", "rule 5: no leader"),
        (None, None, None, "no_end_offset", "rule 5: no metadata and no end offset"),
        (TopicMetadata(1, 5), 3, None, "end_before_commit", "rule 6: the topic was recreated"),
    ],
)
def test_an_unknown_lag_has_a_reason(
    topic: TopicMetadata | None, end: int | None, held: int | None, reason: str | None, why: str
) -> None:
    """An unknown lag is absent and has a reason. It is never negative."""
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


def test_a_partition_that_the_topic_no_longer_has_gets_its_reason() -> None:
    """The topic was recreated with fewer partitions, so no broker has an end offset for it."""
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
def test_lag_is_never_negative_and_known_exactly_if_the_end_is_not_before_the_commit(
    commits: dict[tuple[str, str, int], int], ends: dict[tuple[str, int], int]
) -> None:
    partitions = report(commits, ends).partitions
    assert partitions.schema == LAG_SCHEMA
    for row in partitions.to_pylist():
        end = ends.get((row["topic"], row["partition"]))
        known = end is not None and end >= row["committed_offset"]
        assert row["lag"] == (end - row["committed_offset"] if end is not None and known else None)
        assert (row["lag"] is None) != (row["unknown_reason"] is None), "a row has either a lag or a reason"


@pytest.mark.parametrize(
    ("samples", "is_blocked", "why"),
    [
        ([(900, 900, 100)], False, "the query is late, but there was no transaction"),
        ([(900, 100, 100)], True, "the transaction is open"),
        ([(900, 100, 100), (905, 905, 100)], True, "the transaction ended, and the query has not read the records"),
        ([(900, 100, 100), (905, 905, 899)], True, "the query has not read all of them"),
        ([(900, 100, 100), (905, 905, 900)], False, "only records that were never hidden are unread"),
        ([(900, 100, 100), (905, 905, 100), (990, 990, 899)], True, "this is remembered until the query has read them"),
        ([(900, 100, 100), (905, 905, 100), (990, 990, 950)], False, "the query has read them"),
        (
            [(900, 100, 100), (905, 905, 100), (990, 990, 950), (2_000, 2_000, 950)],
            False,
            "late, and not blocked again",
        ),
        ([(900, 100, 100), None, (905, 905, 100)], True, "one sample did not contain the partition"),
        ([(900, 100, 100), (950, 920, 920), (955, 920, 920), (960, 960, 940)], True, "a second transaction"),
        ([(900, 900, 900), (950, 920, 920)], False, "the transaction began after the previous sample"),
        ([(900, 900, 900), (950, 900, 900), (950, 900, 900)], True, "and is still open at the next sample"),
        ([(900, 850, 850), (950, 930, 930), (990, 960, 960)], False, "each sample shows a different short transaction"),
        ([(900, 100, 100), (950, 920, 920), (960, 960, 940)], False, "a short transaction after a long one"),
        ([(900, 100, 100), (300, 300, 300)], False, "the log was truncated: the hidden records no longer exist"),
    ],
)
def test_a_partition_is_blocked_until_the_records_of_the_transaction_are_read(
    samples: list[tuple[int, int, int] | None], why: str, *, is_blocked: bool
) -> None:
    """A transaction was open for a minute. When it ended, its neighbours had a false lag of a minute, and WARN.

    Kafka Streams with exactly-once opens a transaction ten times per second. So nearly every sample showed an open
    transaction. The state, the lag and the status of all groups in the partition were unknown, and no alert could fire.

    Each sample is given as the high watermark, the last stable offset, and the position of the query before the sample.
    """
    known: ClusterSample | None = None
    for sampled in samples:
        ends, positions = ({}, {}) if sampled is None else ({0: LogEnds(*sampled[:2])}, {0: sampled[2]})
        sample = ClusterSample(1_000, offsets_topic=ends, offsets_topic_partitions=1)
        known = with_hidden_records(sample, known, positions)
    assert known is not None
    assert blocked_groups(known)("g") == is_blocked, why


def test_all_groups_are_blocked_while_the_partition_count_is_unknown_and_records_are_hidden() -> None:
    """A broker had just started and did not describe `__consumer_offsets`. Each sample failed with a ValueError."""
    during = ClusterSample(1_000, offsets_topic={0: LogEnds(900, 100)}, offsets_topic_partitions=1)
    unknown = with_hidden_records(ClusterSample(6_000), during, {0: 100})
    assert report_of({("g", "orders", 0): 4}, unknown).partitions["unknown_reason"].to_pylist() == ["blocked"]
    assert not blocked_groups(with_hidden_records(ClusterSample(11_000), unknown, {0: 900}))("g")


def test_the_lag_of_a_group_is_unknown_while_the_brokers_refuse_to_return_its_commits() -> None:
    """The DESCRIBE permission was removed. The lag grew for ever, with the status STOP, and an incident did not end."""
    sample = ClusterSample(1_000, end_offsets={("orders", 0): 10}, refused_groups=frozenset({"g"}))
    refused, other = report_of({("g", "orders", 0): 4, ("h", "orders", 0): 4}, sample).partitions.to_pylist()
    assert (refused["lag"], refused["unknown_reason"]) == (None, "commits_refused")
    assert (other["lag"], other["unknown_reason"]) == (6, None)
