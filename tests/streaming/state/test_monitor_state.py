"""Tests of the monitor state, which takes complete values and returns immutable views."""

from __future__ import annotations

import threading

import pytest

from streaming.combine.partition_gaps import PartitionGaps
from streaming.combine.partition_state import PartitionSnapshot
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag import ClusterSample, LogEnds
from streaming.events import GroupEvent, Position
from streaming.group.listing import GroupListing, ListedGroup, ListingGap
from streaming.group.snapshot import GroupSnapshot
from streaming.state.monitor_state import MonitorState
from streaming.state.monitor_view import BATCH_BUCKETS_SECONDS, MonitorView, WorkShares
from tests.streaming.groups import advanced, sampled, tombstoned, written


def group(name: str, events: list[GroupEvent]) -> GroupState:
    """Return the state of a group after the events."""
    return GroupState(advanced(events, GroupSnapshot(name)))


def test_a_view_does_not_change_after_it_was_taken() -> None:
    monitor_state = MonitorState()
    monitor_state.put_batch([group("g", [written(0, 1)])], [PartitionSnapshot(0, 5)])
    before = monitor_state.view()
    monitor_state.put_batch(
        [group("g", [written(0, 2)]), group("h", [written(0, 1)])], [PartitionSnapshot(0, 9)], ["g"]
    )
    monitor_state.put_health(ready=True)
    assert before.groups.keys() == {"g"}
    assert before.partition_states[0].last_offset == 5
    assert not before.health.ready


def test_a_batch_put_twice_counts_once() -> None:
    """Rule: nothing twice. The monitor state takes absolute values, so a repeated batch changes nothing."""
    monitor_state = MonitorState()
    batch = ([group("g", [written(0, 1), written(1, 2)])], [PartitionSnapshot(0, 5, -1, {"offset_commit": 3})], ["h"])
    monitor_state.put_batch(*batch)
    once = monitor_state.view()
    monitor_state.put_batch(*batch)
    assert monitor_state.view() == once


def test_the_commits_of_a_partition_state_are_not_kept() -> None:
    """After a start it kept the encoded commits of every key for ever, although CommittedOffsets also has them."""
    partition_state = PartitionSnapshot(
        3, 41, 17, {"offset_commit": 9}, {"truncated": 2}, bytes(10_000_000), PartitionGaps(clock_seconds=7)
    )
    monitor_state = MonitorState()
    monitor_state.put_batch([], [partition_state])
    assert monitor_state.view().partition_states == {
        3: PartitionSnapshot(3, 41, 17, {"offset_commit": 9}, {"truncated": 2})
    }


def test_dead_groups_are_kept_but_not_listed_and_live_groups_are_sorted() -> None:
    monitor_state = MonitorState()
    monitor_state.put_batch([group("b", [written(0, 1)]), group("a", [written(0, 1)]), group("c", [tombstoned(0)])], [])
    assert list(monitor_state.view().alive_groups()) == ["a", "b"]
    assert set(monitor_state.view().groups) == {"a", "b", "c"}


def test_a_change_of_health_keeps_all_other_fields() -> None:
    monitor_state = MonitorState()
    monitor_state.put_health(ready=True, query_restarts=2)
    monitor_state.put_health(table_write_failures=7)
    health = monitor_state.view().health
    assert (health.ready, health.query_restarts, health.table_write_failures) == (True, 2, 7)


@pytest.mark.parametrize("ready", [True, False])
def test_a_readiness_result_from_before_a_rewound_log_is_rejected(ready: bool) -> None:
    """The thread of a batch reports the rewound log while the sampler evaluates. The sampler must not undo it."""
    monitor_state = MonitorState()
    before = monitor_state.view().health
    monitor_state.put_rewound({3})
    assert not monitor_state.put_readiness(ready=ready, before=before)
    assert not monitor_state.put_readiness(ready=ready, before=monitor_state.view().health)
    monitor_state.put_health(ready=ready)
    health = monitor_state.view().health
    assert (health.ready, health.was_ready, health.times_ready) == (False, False, 0)


def test_a_readiness_result_from_before_a_query_failure_is_rejected() -> None:
    """The query failed while the sampler evaluated. The next result is about the restarted query and counts."""
    monitor_state = MonitorState()
    before = monitor_state.view().health
    monitor_state.put_health(ready=False, query_restarts=1)
    assert not monitor_state.put_readiness(ready=True, before=before)
    assert not monitor_state.view().health.ready
    assert monitor_state.put_readiness(ready=True, before=monitor_state.view().health)
    assert monitor_state.view().health.ready


def test_times_ready_counts_changes_to_ready_and_not_reports() -> None:
    monitor_state = MonitorState()
    for ready in (False, True, True, False, True):
        monitor_state.put_readiness(ready=ready, before=monitor_state.view().health)
    health = monitor_state.view().health
    assert (health.ready, health.was_ready, health.times_ready) == (True, True, 2)


def rebalancing(sampled_at_ms: int) -> GroupListing:
    """Return a listing that shows group g during a rebalance."""
    return GroupListing(sampled_at_ms, {"g": ListedGroup("classic", "consumer", "PreparingRebalance", 1)})


def test_a_generation_between_two_listings_restarts_the_time_of_the_rebalance() -> None:
    """In a rebalance storm, a generation is synced every few seconds, and each listing shows the next rebalance.

    The monitor reported this as one stuck rebalance.
    """
    monitor_state = MonitorState()
    for second in range(0, 600, 10):
        monitor_state.put_sample(ClusterSample(second * 1000), None, rebalancing(second * 1000))
        assert monitor_state.view().rebalancing_since_ms == {"g": second * 1000}
        monitor_state.put_batch([group("g", [written(second, second)])], [])
        assert monitor_state.view().rebalancing_since_ms == {}


def test_a_batch_without_a_record_of_the_group_keeps_the_start_of_its_rebalance() -> None:
    """External facts, records of other groups, and a batch that runs again are not new records of the group."""
    monitor_state = MonitorState()
    monitor_state.put_batch([group("g", [written(0, 1)])], [])
    monitor_state.put_sample(ClusterSample(5_000), None, rebalancing(5_000))
    monitor_state.put_batch([group("g", [written(0, 1), sampled(6_000, orders=3)]), group("h", [written(7, 1)])], [])
    monitor_state.put_sample(ClusterSample(9_000), None, rebalancing(9_000))
    assert monitor_state.view().rebalancing_since_ms == {"g": 5_000}


@pytest.mark.parametrize(
    ("listing", "since_ms", "why"),
    [
        (None, {"g": 5_000}, "no broker answered"),
        (GroupListing(7_000, {}, (ListingGap(2, "coordinator_load_in_progress"),)), {"g": 5_000}, "g may exist"),
        (GroupListing(7_000, {}), {}, "the listing is complete, so no coordinator knows g"),
    ],
)
def test_a_listing_without_the_group_ends_its_rebalance_only_if_the_listing_is_complete(
    listing: GroupListing | None, since_ms: dict[str, int], why: str
) -> None:
    """After one incomplete listing, a rebalance of an hour seemed to be new. So `stuck_rebalance` ended."""
    monitor_state = MonitorState()
    monitor_state.put_sample(ClusterSample(5_000), None, rebalancing(5_000))
    monitor_state.put_sample(ClusterSample(7_000), None, listing)
    assert monitor_state.view().rebalancing_since_ms == since_ms, why
    monitor_state.put_sample(ClusterSample(9_000), None, rebalancing(9_000))
    assert monitor_state.view().rebalancing_since_ms == (since_ms or {"g": 9_000}), why


def test_the_stuck_first_rebalance_of_a_group_is_known_without_a_record() -> None:
    """Only listings show this rebalance. Its start is the time of the first listing."""
    monitor_state = MonitorState()
    monitor_state.put_sample(ClusterSample(5_000), None, rebalancing(5_000))
    monitor_state.put_batch([group("h", [written(7, 1)])], [])
    monitor_state.put_sample(ClusterSample(9_000), None, rebalancing(9_000))
    assert monitor_state.view().rebalancing_since_ms == {"g": 5_000}


def test_a_polled_answer_during_the_rebalance_does_not_end_it() -> None:
    """In polling mode, answers change when members join or leave. Such an answer is not a new generation."""
    monitor_state = MonitorState()
    monitor_state.put_batch(
        [GroupState(GroupSnapshot("g", state="PreparingRebalance", position=Position(-1, 1, 0)))], []
    )
    monitor_state.put_sample(ClusterSample(5_000), None, rebalancing(5_000))
    monitor_state.put_batch(
        [GroupState(GroupSnapshot("g", state="PreparingRebalance", position=Position(-1, 2, 0)))], []
    )
    assert monitor_state.view().rebalancing_since_ms == {"g": 5_000}
    monitor_state.put_batch([GroupState(GroupSnapshot("g", state="Stable", position=Position(-1, 3, 0)))], [])
    assert monitor_state.view().rebalancing_since_ms == {}


def test_work_shares_disappear_when_not_ready_and_return_with_the_next_measurement() -> None:
    """Rule: the last value is never shown as the current one. Shares are not measured while the query fails."""
    monitor_state = MonitorState()
    work = {"g": WorkShares(Position(0, 1, 1), ())}
    monitor_state.put_readiness(ready=True, before=monitor_state.view().health)
    monitor_state.put_work(work)
    monitor_state.put_health(query_restarts=7)
    assert monitor_state.view().work == work
    monitor_state.put_health(ready=False)
    monitor_state.put_readiness(ready=True, before=monitor_state.view().health)
    assert monitor_state.view().work == {}
    monitor_state.put_work(work)
    monitor_state.put_rewound({0})
    assert monitor_state.view().work == {}


def test_no_group_is_blocked_without_a_sample_or_without_an_open_transaction() -> None:
    assert not MonitorView().blocked_groups()("g")
    without_transaction = ClusterSample(0, offsets_topic={0: LogEnds(5, 5)}, offsets_topic_partitions=1)
    assert not MonitorView(sample=without_transaction).blocked_groups()("g")
    with_transaction = ClusterSample(0, offsets_topic={0: LogEnds(5, 4)}, offsets_topic_partitions=1)
    assert MonitorView(sample=with_transaction).blocked_groups()("g")


def test_concurrent_updates_of_several_threads_lose_nothing() -> None:
    monitor_state = MonitorState()

    def put(start: int) -> None:
        for number in range(start, start + 100):
            monitor_state.put_batch([group(f"g{number}", [written(0, 1)])], [PartitionSnapshot(number)])
            monitor_state.put_health(query_restarts=number)

    threads = [threading.Thread(target=put, args=(start,)) for start in range(0, 400, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(monitor_state.view().groups) == len(monitor_state.view().partition_states) == 400


def test_the_durations_of_all_batches_are_a_histogram() -> None:
    """The value of only the last batch would hide a slow batch between two scrapes."""
    monitor_state = MonitorState()
    for seconds, ended_ms in ((0.4, 1_000), (0.5, 2_000), (7.0, 9_000), (61.0, 70_000)):
        monitor_state.put_batch_end(seconds, ended_ms)
    health = monitor_state.view().health
    assert dict(zip((*BATCH_BUCKETS_SECONDS, "more"), health.batch_durations.buckets, strict=True)) == {
        0.5: 2, 1: 0, 2: 0, 5: 0, 10: 1, 20: 0, 30: 0, 60: 0, "more": 1,
    }  # fmt: skip
    assert health.batch_durations.sum_seconds == pytest.approx(68.9)
    assert (health.batch_seconds, health.last_batch_ms) == (61.0, 70_000)


def test_failed_writes_of_several_threads_are_all_counted() -> None:
    """Several threads write tables: one thread writes the rows of batches, and one writes the rows of samples."""
    monitor_state = MonitorState()
    writers = [
        threading.Thread(target=lambda: [monitor_state.count_table_write_failure() for _ in range(200)])
        for _ in range(4)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert monitor_state.view().health.table_write_failures == 800
