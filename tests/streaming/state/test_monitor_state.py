"""The registry: whole values in, whole values out."""

from __future__ import annotations

import threading

import pytest

from streaming.combine.partition_gaps import PartitionGaps
from streaming.combine.partition_state import PartitionSnapshot
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag import ClusterSample, LogEnds
from streaming.events import GroupEvent, Position
from streaming.group.listing import GroupListing, ListedGroup
from streaming.group.snapshot import GroupSnapshot
from streaming.state.monitor_state import MonitorState
from streaming.state.monitor_view import MonitorView, WorkShares
from tests.streaming.groups import advanced, sampled, tombstoned, written


def group(name: str, events: list[GroupEvent]) -> GroupState:
    """Return a group's record after the events."""
    return GroupState(advanced(events, GroupSnapshot(name)))


def test_a_present_taken_out_does_not_change_any_more() -> None:
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


def test_putting_the_same_batch_twice_is_as_once() -> None:
    """Rule: nothing twice. The registry takes absolute values, so a replayed batch changes nothing."""
    monitor_state = MonitorState()
    batch = ([group("g", [written(0, 1), written(1, 2)])], [PartitionSnapshot(0, 5, -1, {"offset_commit": 3})], ["h"])
    monitor_state.put_batch(*batch)
    once = monitor_state.view()
    monitor_state.put_batch(*batch)
    assert monitor_state.view() == once


def test_of_a_partition_it_keeps_as_much_for_a_million_keys_as_for_one() -> None:
    """After a start it kept the packed commits of every key for ever, beside those in the book."""
    partition_state = PartitionSnapshot(
        3, 41, 17, {"offset_commit": 9}, {"truncated": 2}, bytes(10_000_000), PartitionGaps(clock_seconds=7)
    )
    monitor_state = MonitorState()
    monitor_state.put_batch([], [partition_state])
    assert monitor_state.view().partition_states == {
        3: PartitionSnapshot(3, 41, 17, {"offset_commit": 9}, {"truncated": 2})
    }


def test_the_dead_are_kept_but_not_shown_and_the_living_are_sorted() -> None:
    monitor_state = MonitorState()
    monitor_state.put_batch([group("b", [written(0, 1)]), group("a", [written(0, 1)]), group("c", [tombstoned(0)])], [])
    assert list(monitor_state.view().alive_groups()) == ["a", "b"]
    assert set(monitor_state.view().groups) == {"a", "b", "c"}


def test_what_one_change_of_health_leaves_out_stays() -> None:
    monitor_state = MonitorState()
    monitor_state.put_health(ready=True, query_restarts=2)
    monitor_state.put_health(batch_id=7)
    health = monitor_state.view().health
    assert (health.ready, health.query_restarts, health.batch_id) == (True, 2, 7)


@pytest.mark.parametrize("ready", [True, False])
def test_a_verdict_made_while_the_log_was_found_rewound_comes_too_late(ready: bool) -> None:
    """A batch's thread finds it while the sampler evaluates. The sampler's result must not undo it."""
    monitor_state = MonitorState()
    before = monitor_state.view().health
    monitor_state.put_rewound({3})
    assert not monitor_state.put_readiness(ready=ready, before=before)
    assert not monitor_state.put_readiness(ready=ready, before=monitor_state.view().health)
    monitor_state.put_health(ready=ready)
    health = monitor_state.view().health
    assert (health.ready, health.was_ready, health.times_ready) == (False, False, 0)


def test_a_verdict_made_while_the_query_failed_comes_too_late() -> None:
    """Likewise; the next one is made of what is known of the query that was started anew."""
    monitor_state = MonitorState()
    before = monitor_state.view().health
    monitor_state.put_health(ready=False, query_restarts=1)
    assert not monitor_state.put_readiness(ready=True, before=before)
    assert not monitor_state.view().health.ready
    assert monitor_state.put_readiness(ready=True, before=monitor_state.view().health)
    assert monitor_state.view().health.ready


def test_it_is_counted_how_often_it_became_ready_not_how_often_it_is_said() -> None:
    monitor_state = MonitorState()
    for ready in (False, True, True, False, True):
        monitor_state.put_readiness(ready=ready, before=monitor_state.view().health)
    health = monitor_state.view().health
    assert (health.ready, health.was_ready, health.times_ready) == (True, True, 2)


def rebalancing(sampled_at_ms: int) -> GroupListing:
    """Return a listing that shows g in the middle of a rebalance."""
    return GroupListing(sampled_at_ms, {"g": ListedGroup("classic", "consumer", "PreparingRebalance", 1)})


def test_a_group_that_syncs_between_two_listings_has_not_been_rebalancing_since_the_first() -> None:
    """A storm: a generation is synced every few seconds, and every listing shows the next rebalance.

    That was reported as one rebalance that is stuck.
    """
    monitor_state = MonitorState()
    for second in range(0, 600, 10):
        monitor_state.put_sample(ClusterSample(second * 1000), None, rebalancing(second * 1000))
        assert monitor_state.view().rebalancing_since_ms == {"g": second * 1000}
        monitor_state.put_batch([group("g", [written(second, second)])], [])
        assert monitor_state.view().rebalancing_since_ms == {}


def test_a_batch_without_a_record_of_the_group_leaves_its_rebalance_as_old_as_it_is() -> None:
    """Facts that the driver returns to a group, other groups' records, and a batch that runs again are no record."""
    monitor_state = MonitorState()
    monitor_state.put_batch([group("g", [written(0, 1)])], [])
    monitor_state.put_sample(ClusterSample(5_000), None, rebalancing(5_000))
    monitor_state.put_batch([group("g", [written(0, 1), sampled(6_000, orders=3)]), group("h", [written(7, 1)])], [])
    monitor_state.put_sample(ClusterSample(9_000), None, rebalancing(9_000))
    assert monitor_state.view().rebalancing_since_ms == {"g": 5_000}


def test_a_group_whose_first_rebalance_hangs_has_no_record() -> None:
    """It is known from listings alone, and stays as old as the first of them."""
    monitor_state = MonitorState()
    monitor_state.put_sample(ClusterSample(5_000), None, rebalancing(5_000))
    monitor_state.put_batch([group("h", [written(7, 1)])], [])
    monitor_state.put_sample(ClusterSample(9_000), None, rebalancing(9_000))
    assert monitor_state.view().rebalancing_since_ms == {"g": 5_000}


def test_an_answer_that_shows_the_rebalance_itself_does_not_end_it() -> None:
    """Where coordinators are asked, members that come and go make answers that differ. None of them is a generation."""
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


def test_shares_of_work_go_when_it_is_not_ready_and_come_when_they_are_measured_anew() -> None:
    """Rule: never a last value for the present. Nobody measures them while the query fails; lag goes on being told."""
    monitor_state = MonitorState()
    work = {"g": WorkShares(Position(0, 1, 1), ())}
    monitor_state.put_readiness(ready=True, before=monitor_state.view().health)
    monitor_state.put_work(work)
    monitor_state.put_health(batch_id=7)
    assert monitor_state.view().work == work
    monitor_state.put_health(ready=False)
    monitor_state.put_readiness(ready=True, before=monitor_state.view().health)
    assert monitor_state.view().work == {}
    monitor_state.put_work(work)
    monitor_state.put_rewound({0})
    assert monitor_state.view().work == {}


def test_nothing_is_held_back_without_a_sample_or_an_open_transaction() -> None:
    assert not MonitorView().blocked_groups()("g")
    even = ClusterSample(0, offsets_topic={0: LogEnds(5, 5)}, offsets_topic_partitions=1)
    assert not MonitorView(sample=even).blocked_groups()("g")
    odd = ClusterSample(0, offsets_topic={0: LogEnds(5, 4)}, offsets_topic_partitions=1)
    assert MonitorView(sample=odd).blocked_groups()("g")


def test_threads_that_put_at_once_lose_nothing() -> None:
    monitor_state = MonitorState()

    def put(start: int) -> None:
        for number in range(start, start + 100):
            monitor_state.put_batch([group(f"g{number}", [written(0, 1)])], [PartitionSnapshot(number)])
            monitor_state.put_health(batch_id=number)

    threads = [threading.Thread(target=put, args=(start,)) for start in range(0, 400, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(monitor_state.view().groups) == len(monitor_state.view().partition_states) == 400
