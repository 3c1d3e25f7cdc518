"""Tests of the consume rate, the produce rate and the time to catch up (`rates.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.coordinator import coordinator_partition
from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample, LogEnds, lag_report
from streaming.evaluation.lag.lag_evaluation import LagEvaluation, evaluate_lag
from streaming.evaluation.lag.lag_seconds import END_OFFSET_POINTS
from streaming.evaluation.lag.rates import (
    WINDOW_MS,
    CommitPoints,
    LogBounds,
    catch_up_seconds,
    known_produce_rates,
    produce_rates,
)
from streaming.evaluation.lag.retention.lost_records import LOG_START_POINTS
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets
from streaming.events import TopicMetadata

SAMPLE_SECONDS = 5
ROW = np.array([0])

Commit = tuple[float, int]
"""The second of a commit on the coordinator's clock, and the committed offset."""


def every(seconds: float, until: float, records_per_second: float = 100, begin: float = 0) -> list[Commit]:
    """Return steady commits."""
    times = np.arange(begin, until + 0.001, seconds)
    return [(float(at), round(records_per_second * at)) for at in times]


def sampled_rates(commits: Sequence[Commit], until: float, sample_seconds: float = SAMPLE_SECONDS) -> Iterator[float]:
    """Yield the rate at each sample. Each sample sees the last commit up to its time."""
    points = CommitPoints()
    for now in np.arange(0, until + 0.001, sample_seconds):
        seen = [commit for commit in commits if commit[0] <= now]
        if seen:
            at, offset = seen[-1]
            now_ms = int(1000 * now)
            points.add(ROW, np.array([offset]), np.array([int(1000 * at)]), now_ms, np.array([now_ms]))
            yield float(points.rates(ROW, np.array([now_ms]))[0])


def last_rate(commits: Sequence[Commit], until: float) -> float | None:
    """Return the rate at the last sample. None: unknown."""
    rate = list(sampled_rates(commits, until))[-1]
    return None if np.isnan(rate) else round(rate, 2)


@pytest.mark.parametrize(
    ("commits", "until", "rate", "why"),
    [
        (every(1, 600), 600, 100, "steady, a commit every second"),
        (every(5, 600), 600, 100, "steady, the default interval of the Java client"),
        (every(60, 645), 645, 100, "steady, 45 s after the last commit: not lower than just after a commit"),
        (every(240, 700), 700, 100, "steady, a commit every four minutes"),
        (every(5, 55), 55, None, "the commits cover less than one minute"),
        (every(5, 70), 70, 100, "the commits cover more than one minute"),
        ([(0, 700)], 200, None, "one commit shows no rate"),
        ([(0, 700)], 301, 0, "no commit for longer than the window"),
        ([(0, 700), (60, 700), (120, 700)], 120, 0, "commits go on, but no record was consumed"),
        ([*every(5, 300), (300.5, 30_000)], 700, 0, "the group stopped, and two windows have passed"),
        ([(0, 0), (5, 0), (1800, 3_000)], 1800, 10, "a burst after half an hour counts in the last five minutes"),
        ([*every(5, 600), (605, 10)], 605, None, "the group was rewound (rule 3)"),
        ([*every(5, 600), *((at, at) for at in range(605, 700, 5))], 695, 1, "a minute after a rewind"),
        (
            [*every(5, 300), *((at, 30_000 + at) for at in range(305, 331, 5))],
            330,
            91.1,
            "half a minute after the rate fell from 100 to 1",
        ),
    ],
)
def test_the_consume_rate_of_a_partition(commits: Sequence[Commit], until: float, rate: float | None, why: str) -> None:
    assert last_rate(commits, until) == rate, why


def test_a_commit_every_minute_gives_one_constant_rate() -> None:
    """Flink and Spark commit with each checkpoint. A rate that jumps between 0 and double would be useless."""
    known = [rate for rate in sampled_rates(every(60, 1200), 1200) if not np.isnan(rate)]
    assert len(known) > 100
    assert known == pytest.approx([100] * len(known))


def test_after_the_last_commit_the_rate_falls_to_zero_without_jumps() -> None:
    rates = list(sampled_rates(every(5, 600), 1000))[600 // SAMPLE_SECONDS :]
    falls = -np.diff(rates)
    assert rates[-1] == 0
    assert (falls >= 0).all()
    assert falls.max() < 10


def test_a_partition_that_was_absent_in_a_sample_starts_again() -> None:
    """Its commits expired or were deleted. The next commit can be anywhere."""
    points = CommitPoints()
    for second in range(0, 121, 5):
        rows = np.array([0, 1]) if second != 60 else ROW
        offsets, times_ms = np.full(len(rows), 10 * second), np.full(len(rows), 1000 * second)
        points.add(rows, offsets, times_ms, 1000 * second, times_ms)
    both = points.rates(np.array([0, 1]), np.array([120_000, 120_000]))
    assert both[0] == pytest.approx(10)
    assert np.isnan(both[1])


def rates_with_deletions(
    commit_at: Callable[[int], int | None],
    deleted_at: Callable[[int], int | None],
    samples: range,
) -> list[float]:
    """Return the consume rate at each sample. The two functions return the new offset of a second, or None."""
    points, rates, log_start, last = CommitPoints(), list[float](), 0, (0, 0)
    for second in range(samples.stop):
        if (offset := commit_at(second)) is not None:
            last = second, offset
        log_start = max(log_start, deleted_at(second) or 0)
        if second in samples:
            now_ms = np.array([1000 * second])
            log = LogBounds(np.array([log_start]), np.array([100 * second]))
            points.add(ROW, np.array([last[1]]), np.array([1000 * last[0]]), 1000 * second, now_ms, log)
            rates += points.rates(ROW, now_ms).tolist()
    return rates


@pytest.mark.parametrize("deletion_second", [1, 4])
def test_records_that_retention_deleted_are_not_consumed(deletion_second: int) -> None:
    """A group that processed 10 records/s and lost 90 records/s seemed to process 100 records/s.

    It commits every 5 s. Every 60 s, retention deletes all records that are older than two minutes.
    """
    position = [0]

    def log_start(second: int) -> int:
        return max(0, (second - deletion_second) // 60 * 6_000 - 12_000)

    def commit(second: int) -> int | None:
        position[0] = max(position[0], log_start(second)) + 10
        return position[0] if second % 5 == 0 else None

    rates = rates_with_deletions(commit, log_start, range(3, 1_800, 5))
    assert rates[-240:] == pytest.approx([10] * 240)


@pytest.mark.parametrize("sample_seconds", [5, 15])
@pytest.mark.parametrize("lag_seconds", [1, 20, 120])
@pytest.mark.parametrize("commit_seconds", [1, 10, 30])
def test_the_rate_of_kafka_streams_is_known_although_it_deletes_what_it_has_consumed(
    commit_seconds: int, lag_seconds: int, sample_seconds: int
) -> None:
    """Every 30 s, Streams deletes the records of a repartition topic up to its last commit (DeleteRecords)."""

    def commit(second: int) -> int | None:
        return max(0, 100 * (second - lag_seconds)) if second % commit_seconds == 0 else None

    def log_start(second: int) -> int | None:
        return commit(second) if second % 30 == 0 else None

    rates = rates_with_deletions(commit, log_start, range(2, 1_800, sample_seconds))
    known = rates[900 // sample_seconds :]
    assert known == pytest.approx([100] * len(known), rel=0.05)


def test_after_a_pause_in_which_retention_deleted_records_the_rate_starts_again() -> None:
    """The group was stopped for a day. The rate before the stop is no fact about the present."""

    def commit(second: int) -> int | None:
        if 600 < second < 4_000:
            return None
        return 10 * second if second <= 600 else 300_000 + 10 * (second - 4_000)

    rates = rates_with_deletions(commit, lambda second: 300_000 if second == 3_900 else None, range(3, 4_100, 5))
    first = (4_003 - 3) // 5
    assert rates[first - 1] == 0
    assert np.isnan(rates[first : first + 12]).all()
    assert rates[-1] == pytest.approx(10)


def test_reading_old_records_does_not_look_like_a_fast_group() -> None:
    """After a restart, the monitor reads an hour of commits within a few samples. The group reads 10 records/s."""
    points = CommitPoints()
    for sample, read_up_to_s in enumerate((0, 900, 1800, 2700, 3600)):
        read_up_to_ms, now_ms = np.array([1000 * read_up_to_s]), 3_600_000 + 5_000 * sample
        points.add(ROW, np.array([10 * read_up_to_s]), read_up_to_ms, now_ms, read_up_to_ms)
    assert points.rates(ROW, np.array([3_600_000])).tolist() == [10.0]


def test_a_stalled_read_of_the_log_does_not_look_like_a_stopped_group() -> None:
    """The present is the time up to which the log was read. While it is unknown, the rate is unknown."""
    points = CommitPoints()
    for second in range(0, 301, 5):
        points.add(ROW, np.array([10 * second]), np.array([1000 * second]), 1000 * second, np.array([1000 * second]))
    assert points.rates(ROW, np.array([300_000])).tolist() == [10.0], "ten minutes later, with nothing read since"
    assert np.isnan(points.rates(ROW, np.array([-1]))).all()


def test_a_timestamp_in_the_future_counts_as_the_time_of_the_sample() -> None:
    """Clients of Kafka 0.9 choose the timestamp. A coordinator's clock can be ahead."""
    points, far_ms = CommitPoints(), np.array([4_000_000_000_000])
    for second in range(0, 301, 5):
        points.add(ROW, np.array([10 * second]), far_ms, 1000 * second, np.array([1000 * second]))
    assert points.rates(ROW, np.array([300_000])).tolist() == [10.0]


@pytest.mark.parametrize(
    ("commit_s", "why"),
    [
        (295, "the coordinator moved to a broker whose clock is behind"),
        (300, "a client of Kafka 0.9 sends the same timestamp with every commit"),
    ],
)
def test_after_a_commit_without_a_later_timestamp_the_rate_is_unknown_for_a_minute(commit_s: int, why: str) -> None:
    points, rates = CommitPoints(), []
    for second in range(0, 401, 5):
        at_ms = 1000 * second if second != 305 else 1000 * commit_s
        points.add(ROW, np.array([10 * second]), np.array([at_ms]), 1000 * second, np.array([1000 * second]))
        rates += points.rates(ROW, np.array([1000 * second])).tolist()
    assert rates[60] == pytest.approx(10), "at 300 s"
    assert np.isnan(rates[61:71]).all(), why
    assert 9 < rates[80] < 11, "at 400 s"


@pytest.mark.parametrize(
    ("samples", "rate", "why"),
    [
        ([(0, 0), (300, 3000)], 10, "two samples, five minutes apart"),
        ([(0, 0), (600, 6000)], 10, "no sample for ten minutes: the monitor was stopped"),
        ([(0, 0), (200, 0), (500, 3000)], 10, "the window is later than the first sample"),
        ([(0, 0), (30, 300)], None, "less than one minute"),
        ([(0, 500), (300, 500)], 0, "nobody produces"),
        ([(0, 9000), (200, 5), (230, 305)], None, "the topic was created again, and sampled for half a minute"),
        ([(0, 9000), (200, 5), (300, 1005)], 10, "the topic was created again, and sampled for more than a minute"),
        ([(0, 0), (5, 5000), (400, 5000)], 0, "a burst more than five minutes ago"),
    ],
)
def test_the_produce_rate_of_a_partition(samples: Sequence[tuple[int, int]], rate: float | None, why: str) -> None:
    ends = SampledOffsets(END_OFFSET_POINTS)
    for second, offset in samples:
        ends.add({("orders", 0): offset}, 1000 * second)
    (found,) = produce_rates(ends, 1000 * samples[-1][0]).tolist()
    assert (None if np.isnan(found) else found) == rate, why


def test_a_partition_that_was_not_sampled_has_no_produce_rate() -> None:
    ends = SampledOffsets(END_OFFSET_POINTS)
    for second in (0, 300):
        ends.add({("orders", 0): second, **({("orders", 1): second} if second == 0 else {})}, 1000 * second)
    assert np.isnan(produce_rates(ends, 300_000)).tolist() == [False, True]
    assert known_produce_rates(ends, 300_000).keys() == {("orders", 0)}, "an unknown rate is absent, never 0"


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 1_000)), min_size=2, max_size=40),
    st.sampled_from([3, 10, END_OFFSET_POINTS]),
)
def test_a_produce_rate_is_never_above_the_fastest_sampled_growth(steps: list[tuple[int, int]], limit: int) -> None:
    """If samples are removed to save memory, the rate is still a mean of rates that were sampled."""
    ends = SampledOffsets(limit)
    second, offset = 0, 0
    for seconds, grown in steps:
        second, offset = second + seconds, offset + grown
        ends.add({("orders", 0): offset}, 1000 * second)
    for rate in known_produce_rates(ends, 1000 * second).values():
        assert 0 <= rate <= max(grown / seconds for seconds, grown in steps[1:]) + 1e-9


@pytest.mark.parametrize(
    ("lag", "consumed", "produced", "seconds", "why"),
    [
        (600, 30.0, 10.0, 30.0, "the lag shrinks by 20 records/s"),
        (600, 10.0, 10.0, None, "the lag stays the same"),
        (600, 10.1, 10.0, None, "a difference of 1 % is not larger than the error of the rates"),
        (600, 10.0, 30.0, None, "the lag grows"),
        (0, 30.0, 10.0, None, "no lag"),
        (None, 30.0, 10.0, None, "the lag is unknown"),
        (600, None, 10.0, None, "the consume rate is unknown"),
        (600, 30.0, None, None, "the produce rate is unknown"),
        (600, 0.0, 0.0, None, "nothing moves"),
    ],
)
def test_the_time_to_catch_up(
    lag: int | None, consumed: float | None, produced: float | None, seconds: float | None, why: str
) -> None:
    columns = pa.array([lag], pa.int64()), pa.array([consumed], pa.float64()), pa.array([produced], pa.float64())
    assert catch_up_seconds(*columns).to_pylist() == [seconds], why


@dataclass
class Partition:
    """A partition of topic `orders` with its rates: `consumed` None means that its commits were not observed."""

    consumed: float | None = 100.0
    is_sampled: bool = True
    committed: int = 50
    topic: str = "orders"


def evaluated(partitions: Sequence[Partition], *, is_blocked: bool = False) -> LagEvaluation:
    """Evaluate group `g`. Producers wrote 10 records/s to each sampled partition."""
    ends, starts = SampledOffsets(END_OFFSET_POINTS), SampledOffsets(LOG_START_POINTS)
    sampled = [number for number, one in enumerate(partitions) if one.is_sampled and one.topic == "orders"]
    for minute in range(5):
        ends.add({("orders", number): 600 * minute for number in sampled}, 60_000 * minute)
    now = {("orders", number): 3000 for number in sampled}
    ends.add(now, 300_000)
    held = coordinator_partition("g", 50)
    sample = ClusterSample(
        300_000,
        topics={"orders": TopicMetadata(len(partitions), 1), "gone": TopicMetadata(None, 1)},
        end_offsets=now,
        offsets_topic={held: LogEnds(9, 5 if is_blocked else 9)},
        offsets_topic_partitions=50,
    )
    rows = [("g", one.topic, number, one.committed, 299_000 - number) for number, one in enumerate(partitions)]
    commits = pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=LAG_SCHEMA.names[:5])
    consumed = np.array([np.nan if one.consumed is None else one.consumed for one in partitions])
    unread = pa.nulls(len(rows), pa.int64())
    return evaluate_lag(lag_report(commits, sample), ends, starts, None, unread, consumed=consumed)


RATES = ("consumed_records_per_second", "produced_records_per_second")


@pytest.mark.parametrize(
    ("partitions", "consumed", "produced", "why"),
    [
        ([Partition(), Partition(7.0)], 107, 20, "the sum of all partitions"),
        ([Partition(), Partition(None)], None, 20, "a partition was added: a sum without it would be too small"),
        ([Partition(), Partition(is_sampled=False)], 200, None, "a partition has no leader"),
        ([Partition(), Partition(None, topic="gone")], 100, 10, "a deleted topic gets no records and has no reader"),
        ([Partition(topic="gone")], None, None, "nothing is known about a group of deleted topics"),
    ],
)
def test_the_rate_of_a_group(
    partitions: Sequence[Partition], consumed: float | None, produced: float | None, why: str
) -> None:
    """Rule 10."""
    (group,) = evaluated(partitions).groups.to_pylist()
    assert [group[name] for name in RATES] == [consumed, produced], why


def test_a_blocked_group_has_no_rates_because_later_commits_are_hidden() -> None:
    found = evaluated([Partition()], is_blocked=True)
    assert [found.partitions[name].to_pylist() for name in RATES] == [[None], [None]]
    assert found.groups.num_rows == 0


def test_a_group_has_the_time_of_its_latest_commit_its_worst_partition_and_its_time_to_catch_up() -> None:
    """The lag is 2950 + 2800 records. It shrinks by 200 - 20 records/s. Partition 0 waits longer."""
    (group,) = evaluated([Partition(), Partition(committed=200)]).groups.to_pylist()
    assert group["last_commit_ms"] == 299_000
    assert (group["worst_topic"], group["worst_partition"]) == ("orders", 0)
    assert group["catch_up_seconds"] == pytest.approx((2950 + 2800) / 180)


def test_of_partitions_that_wait_equally_long_the_one_with_the_larger_lag_is_the_worst() -> None:
    """Both have not committed for longer than the samples reach, so both have the same lower bound."""
    found = evaluated([Partition(committed=0), Partition(committed=0)])
    assert found.groups["worst_partition"].to_pylist() == [0], "and by topic and number if the lags are equal"


def test_a_group_without_lag_has_no_worst_partition() -> None:
    (group,) = evaluated([Partition(committed=3000)]).groups.to_pylist()
    assert (group["worst_topic"], group["worst_partition"], group["catch_up_seconds"]) == (None, None, None)


@given(
    steps=st.lists(st.tuples(st.integers(1, 400_000), st.integers(0, 10**6)), min_size=1, max_size=40),
    sample_ms=st.integers(1_000, 120_000),
)
def test_a_rate_is_never_negative_and_never_above_the_fastest_step(
    steps: Sequence[tuple[int, int]], sample_ms: int
) -> None:
    """Each step is the time since the commit before, and the number of consumed records."""
    points, at_ms, offset, fastest = CommitPoints(), 0, 0, 0.0
    for elapsed_ms, records in steps:
        at_ms, offset = at_ms + elapsed_ms, offset + records
        fastest = max(fastest, 1000 * records / min(elapsed_ms, WINDOW_MS))
        now_ms = at_ms + sample_ms
        points.add(ROW, np.array([offset]), np.array([at_ms]), now_ms, np.array([at_ms]))
        (rate,) = points.rates(ROW, np.array([now_ms])).tolist()
        assert np.isnan(rate) or -1e-6 <= rate <= fastest * (1 + 1e-9)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e9)), min_size=1, max_size=8))
def test_the_rate_of_a_group_is_the_sum_of_its_partitions_or_unknown(consumed: Sequence[float | None]) -> None:
    found = evaluated([Partition(one) for one in consumed])
    parts = found.partitions[RATES[0]].to_pylist()
    assert parts == list(consumed)
    (total,) = found.groups[RATES[0]].to_pylist()
    assert total == (None if None in parts else pytest.approx(sum(parts)))
