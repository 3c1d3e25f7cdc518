"""Tests of the shares of lag and throughput that each sample shows and writes."""

from __future__ import annotations

import doctest
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

import streaming.run.samples.lag.work_watch
from assignors import assignor_named
from assignors.coordinator import coordinator_partition
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.lag.lag import ClusterSample, LagReport, LogEnds
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.events import GroupEvent, TopicMetadata, TopicsSampled
from streaming.group.snapshot import GroupSnapshot
from streaming.run.samples.lag.work_watch import WorkWatch
from streaming.state.monitor_view import MonitorView, WorkShares
from tests.streaming.groups import emptied, member, target_epoch, written
from tests.streaming.groups import epoch as epoch_written

STRATEGIES = [assignor_named("range")]
KNOWN = TopicsSampled({"orders": TopicMetadata(4, 10**9)})
TWO = [member("a", {"orders": [0, 1]}), member("b", {"orders": [2, 3]})]
Lag = Mapping[int, int | None]


def record(*events: GroupEvent) -> GroupState:
    """Return the group `g` after its events, with one batch per event."""
    group_state = GroupState(GroupSnapshot("g"))
    for event in events:
        group_state = apply_batch(group_state, [event], STRATEGIES).record
    return group_state


GROUP = record(written(5, 3, TWO), KNOWN)


def lag_of(lag: Lag, sampled_at_ms: int = 0) -> LagEvaluation:
    """Return the lag of the group's partitions at a sample."""
    rows = [{"group_id": "g", "topic": "orders", "partition": at, "lag": records} for at, records in lag.items()]
    schema = pa.schema(
        [("group_id", pa.string()), ("topic", pa.string()), ("partition", pa.int32()), ("lag", pa.int64())]
    )
    table = pa.Table.from_pylist(rows, schema=schema)
    return LagEvaluation(LagReport(sampled_at_ms, table), table)


def measure_sample(
    watch: WorkWatch, lag: Lag, rates: Mapping[int, float], group_state: GroupState = GROUP, sample_number: int = 0
) -> tuple[WorkShares | None, list[dict[str, object]]]:
    """Return the shares that one sample shows for the group, and the rows that it writes."""
    by_partition = {("orders", at): rate for at, rate in rates.items()}
    work, rows = watch.measure(
        MonitorView(groups={"g": group_state}), lag_of(lag, 30_000 * sample_number), by_partition
    )
    return work.get("g"), rows.to_pylist()


def test_each_measure_is_shown_among_members_and_hosts_and_written_for_topics_too() -> None:
    """Member `a` has all the lag, and `b` has twice the traffic. Both run on one host, so hosts are always balanced."""
    shares, rows = measure_sample(
        WorkWatch("prod"), {0: 30, 1: 10, 2: 0, 3: 0}, {0: 1.0, 1: 1.0, 2: 2.0, 3: 2.0}, sample_number=1
    )
    assert shares is not None
    assert [(one.measure, one.scope, one.largest, one.busiest, one.score) for one in shares.imbalances] == [
        ("lag", "member", 40, "a", 0),
        ("lag", "host", 40, "/127.0.0.1", 100),
        ("throughput", "member", 4, "b", pytest.approx(200 / 3)),
        ("throughput", "host", 6, "/127.0.0.1", 100),
    ]
    assert [(row["measure"], row["scope"], row["topic"], row["total"], row["excess"]) for row in rows] == [
        ("lag", "member", None, 40, 10),
        ("lag", "host", None, 40, 0),
        ("lag", "topic", "orders", 40, 10),
        ("throughput", "member", None, 6, 1),
        ("throughput", "host", None, 6, 0),
        ("throughput", "topic", "orders", 6, 1),
    ]
    (key,) = {(row["offsets_topic_offset"], str(row["record_time"]), str(row["sampled_time"])) for row in rows}
    assert key == (5, "1970-01-01 00:00:05+00:00", "1970-01-01 00:00:30+00:00"), (
        "the record of the assignment, and the time of the sample"
    )


EVEN, LATE = {0: 10, 1: 10, 2: 10, 3: 10}, {0: 10, 1: 10, 2: 10, 3: 12}
ALL_ON_A = {0: 10, 1: 10, 2: 0, 3: 0}
NO_RATES: Mapping[int, float] = {}


@pytest.mark.parametrize(
    ("before", "now", "written_again", "why"),
    [
        (EVEN, EVEN, False, "nothing changed"),
        (EVEN, LATE, False, "two additional records of forty are no change"),
        (EVEN, ALL_ON_A, True, "member `a` has all the lag now"),
        (EVEN, {**EVEN, 3: None}, True, "the lag became unknown"),
        ({**EVEN, 3: None}, EVEN, True, "the lag became known again"),
        ({**EVEN, 3: None}, {**EVEN, 2: None}, False, "a different partition is unknown: the sum is unknown as before"),
    ],
)
def test_a_share_is_written_again_only_if_it_changed(before: Lag, now: Lag, written_again: bool, why: str) -> None:
    """Lag changes with every sample. One row per sample would make the table too large to read."""
    watch = WorkWatch("prod")
    measure_sample(watch, before, NO_RATES)
    _, rows = measure_sample(watch, now, NO_RATES, sample_number=1)
    assert ({row["measure"] for row in rows} == {"lag"}) == written_again, why


def test_rows_that_did_not_reach_the_table_are_written_again() -> None:
    """If the disk is full for a minute, rows must not be missing until the next rebalance."""
    watch = WorkWatch("prod")
    _, lost = measure_sample(watch, EVEN, NO_RATES)
    watch.forget_written()
    _, again = measure_sample(watch, EVEN, NO_RATES)
    assert again == lost


def test_unknown_lag_is_not_a_number() -> None:
    shares, rows = measure_sample(WorkWatch("prod"), {0: 5, 1: 5, 2: 5}, NO_RATES)
    assert shares is not None
    assert {(one.unknown_reason, one.score, one.total) for one in shares.imbalances} == {
        ("lag_unknown", None, None),
        ("throughput_unknown", None, None),
    }
    assert [row["unknown_partitions"] for row in rows if row["scope"] == "member"] == [1, 4]


def test_a_new_generation_is_measured_and_written_again() -> None:
    watch = WorkWatch("prod")
    measure_sample(watch, EVEN, NO_RATES)
    moved = record(written(5, 3, TWO), KNOWN, written(6, 4, [member("a", {"orders": [0, 1, 2, 3]})]))
    shares, rows = measure_sample(watch, EVEN, NO_RATES, moved)
    assert {row["offsets_topic_offset"] for row in rows} == {6}
    assert shares is not None
    assert shares.position == moved.evaluation.position  # type: ignore[union-attr]


def test_a_returned_static_member_is_measured_under_its_new_id_and_nothing_is_written_twice() -> None:
    """The verdict of the generation does not change, and neither does the key of its rows."""
    watch = WorkWatch("prod")
    measure_sample(watch, ALL_ON_A, NO_RATES)
    rejoined = record(written(5, 3, TWO), KNOWN, written(6, 3, [member("a2", {"orders": [0, 1]}), TWO[1]]))
    shares, rows = measure_sample(watch, ALL_ON_A, NO_RATES, rejoined, sample_number=1)
    assert shares is not None
    assert shares.imbalances[0].busiest == "a2"
    assert rows == []


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([], "no record yet"),
        ([written(5, 3, TWO), emptied(6, 4)], "the group has no members"),
        (
            [written(5, 3, TWO), KNOWN, epoch_written(6, 4), target_epoch(7, 4)],
            "the group was upgraded, and its members are unknown",
        ),
    ],
)
def test_a_group_without_a_current_assignment_is_not_measured(events: Sequence[GroupEvent], why: str) -> None:
    assert measure_sample(WorkWatch("prod"), EVEN, NO_RATES, record(*events)) == (None, []), why


def test_a_group_blocked_by_an_open_transaction_is_not_measured() -> None:
    """The open transaction hides the group's current assignment."""
    offsets_topic = {coordinator_partition("g", 50): LogEnds(20, 15)}
    view = MonitorView(
        groups={"g": GROUP}, sample=ClusterSample(0, offsets_topic=offsets_topic, offsets_topic_partitions=50)
    )
    assert WorkWatch("prod").measure(view, lag_of(EVEN), {})[0] == {}


def test_the_example_in_the_docstring_is_true() -> None:
    assert doctest.testmod(streaming.run.samples.lag.work_watch).failed == 0
