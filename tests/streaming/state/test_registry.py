"""The registry: whole values in, whole values out."""

from __future__ import annotations

import threading

import pytest

from streaming.combine.lane_gaps import LaneGaps
from streaming.combine.lanes import PartitionSnapshot
from streaming.evaluation.lag.lag import ClusterSample, LogEnds
from streaming.evaluation.turn import GroupRecord
from streaming.events import GroupEvent, Position
from streaming.group.listing import GroupListing, ListedGroup
from streaming.group.snapshot import GroupSnapshot
from streaming.state.present import Present, WorkShares
from streaming.state.registry import Registry
from tests.streaming.groups import advanced, sampled, tombstoned, written


def group(name: str, events: list[GroupEvent]) -> GroupRecord:
    """Return a group's record after the events."""
    return GroupRecord(advanced(events, GroupSnapshot(name)))


def test_a_present_taken_out_does_not_change_any_more() -> None:
    registry = Registry()
    registry.put_batch([group("g", [written(0, 1)])], [PartitionSnapshot(0, 5)])
    before = registry.present()
    registry.put_batch([group("g", [written(0, 2)]), group("h", [written(0, 1)])], [PartitionSnapshot(0, 9)], ["g"])
    registry.put_health(ready=True)
    assert before.groups.keys() == {"g"}
    assert before.lanes[0].last_offset == 5
    assert not before.health.ready


def test_putting_the_same_batch_twice_is_as_once() -> None:
    """Law: nothing twice. The registry takes absolute values, so a replayed batch changes nothing."""
    registry = Registry()
    batch = ([group("g", [written(0, 1), written(1, 2)])], [PartitionSnapshot(0, 5, -1, {"offset_commit": 3})], ["h"])
    registry.put_batch(*batch)
    once = registry.present()
    registry.put_batch(*batch)
    assert registry.present() == once


def test_of_a_partition_it_keeps_as_much_for_a_million_keys_as_for_one() -> None:
    """After a start it kept the packed commits of every key for ever, beside those in the book."""
    lane = PartitionSnapshot(
        3, 41, 17, {"offset_commit": 9}, {"truncated": 2}, bytes(10_000_000), LaneGaps(clock_seconds=7)
    )
    registry = Registry()
    registry.put_batch([], [lane])
    assert registry.present().lanes == {3: PartitionSnapshot(3, 41, 17, {"offset_commit": 9}, {"truncated": 2})}


def test_the_dead_are_kept_but_not_shown_and_the_living_are_sorted() -> None:
    registry = Registry()
    registry.put_batch([group("b", [written(0, 1)]), group("a", [written(0, 1)]), group("c", [tombstoned(0)])], [])
    assert list(registry.present().alive_groups()) == ["a", "b"]
    assert set(registry.present().groups) == {"a", "b", "c"}


def test_what_one_change_of_health_leaves_out_stays() -> None:
    registry = Registry()
    registry.put_health(ready=True, query_restarts=2)
    registry.put_health(batch_id=7)
    health = registry.present().health
    assert (health.ready, health.query_restarts, health.batch_id) == (True, 2, 7)


@pytest.mark.parametrize("ready", [True, False])
def test_a_verdict_made_while_the_log_was_found_rewound_comes_too_late(ready: bool) -> None:
    """A batch's thread finds it while the sampler judges: what the one says is not undone by what the other thought."""
    registry = Registry()
    before = registry.present().health
    registry.put_rewound({3})
    assert not registry.put_readiness(ready=ready, before=before)
    assert not registry.put_readiness(ready=ready, before=registry.present().health)
    registry.put_health(ready=ready)
    health = registry.present().health
    assert (health.ready, health.was_ready, health.times_ready) == (False, False, 0)


def test_a_verdict_made_while_the_query_failed_comes_too_late() -> None:
    """Likewise; the next one is made of what is known of the query that was started anew."""
    registry = Registry()
    before = registry.present().health
    registry.put_health(ready=False, query_restarts=1)
    assert not registry.put_readiness(ready=True, before=before)
    assert not registry.present().health.ready
    assert registry.put_readiness(ready=True, before=registry.present().health)
    assert registry.present().health.ready


def test_it_is_counted_how_often_it_became_ready_not_how_often_it_is_said() -> None:
    registry = Registry()
    for ready in (False, True, True, False, True):
        registry.put_readiness(ready=ready, before=registry.present().health)
    health = registry.present().health
    assert (health.ready, health.was_ready, health.times_ready) == (True, True, 2)


def rebalancing(sampled_at_ms: int) -> GroupListing:
    """Return a listing that shows g in the middle of a rebalance."""
    return GroupListing(sampled_at_ms, {"g": ListedGroup("classic", "consumer", "PreparingRebalance", 1)})


def test_a_group_that_syncs_between_two_listings_has_not_been_rebalancing_since_the_first() -> None:
    """A storm: a generation is synced every few seconds, and every listing shows the next rebalance.

    That was reported as one rebalance that is stuck.
    """
    registry = Registry()
    for second in range(0, 600, 10):
        registry.put_sample(ClusterSample(second * 1000), None, rebalancing(second * 1000))
        assert registry.present().rebalancing_since_ms == {"g": second * 1000}
        registry.put_batch([group("g", [written(second, second)])], [])
        assert registry.present().rebalancing_since_ms == {}


def test_a_batch_without_a_record_of_the_group_leaves_its_rebalance_as_old_as_it_is() -> None:
    """Facts that the driver returns to a group, other groups' records, and a batch that runs again are no record."""
    registry = Registry()
    registry.put_batch([group("g", [written(0, 1)])], [])
    registry.put_sample(ClusterSample(5_000), None, rebalancing(5_000))
    registry.put_batch([group("g", [written(0, 1), sampled(6_000, orders=3)]), group("h", [written(7, 1)])], [])
    registry.put_sample(ClusterSample(9_000), None, rebalancing(9_000))
    assert registry.present().rebalancing_since_ms == {"g": 5_000}


def test_a_group_whose_first_rebalance_hangs_has_no_record() -> None:
    """It is known from listings alone, and stays as old as the first of them."""
    registry = Registry()
    registry.put_sample(ClusterSample(5_000), None, rebalancing(5_000))
    registry.put_batch([group("h", [written(7, 1)])], [])
    registry.put_sample(ClusterSample(9_000), None, rebalancing(9_000))
    assert registry.present().rebalancing_since_ms == {"g": 5_000}


def test_an_answer_that_shows_the_rebalance_itself_does_not_end_it() -> None:
    """Where coordinators are asked, members that come and go make answers that differ. None of them is a generation."""
    registry = Registry()
    registry.put_batch([GroupRecord(GroupSnapshot("g", state="PreparingRebalance", position=Position(-1, 1, 0)))], [])
    registry.put_sample(ClusterSample(5_000), None, rebalancing(5_000))
    registry.put_batch([GroupRecord(GroupSnapshot("g", state="PreparingRebalance", position=Position(-1, 2, 0)))], [])
    assert registry.present().rebalancing_since_ms == {"g": 5_000}
    registry.put_batch([GroupRecord(GroupSnapshot("g", state="Stable", position=Position(-1, 3, 0)))], [])
    assert registry.present().rebalancing_since_ms == {}


def test_shares_of_work_go_when_it_is_not_ready_and_come_when_they_are_measured_anew() -> None:
    """Law: never a last value for the present. Nobody measures them while the query fails; lag goes on being told."""
    registry = Registry()
    work = {"g": WorkShares(Position(0, 1, 1), ())}
    registry.put_readiness(ready=True, before=registry.present().health)
    registry.put_work(work)
    registry.put_health(batch_id=7)
    assert registry.present().work == work
    registry.put_health(ready=False)
    registry.put_readiness(ready=True, before=registry.present().health)
    assert registry.present().work == {}
    registry.put_work(work)
    registry.put_rewound({0})
    assert registry.present().work == {}


def test_nothing_is_held_back_without_a_sample_or_an_open_transaction() -> None:
    assert not Present().held_back_groups()("g")
    even = ClusterSample(0, offsets_topic={0: LogEnds(5, 5)}, offsets_topic_partitions=1)
    assert not Present(sample=even).held_back_groups()("g")
    odd = ClusterSample(0, offsets_topic={0: LogEnds(5, 4)}, offsets_topic_partitions=1)
    assert Present(sample=odd).held_back_groups()("g")


def test_threads_that_put_at_once_lose_nothing() -> None:
    registry = Registry()

    def put(start: int) -> None:
        for number in range(start, start + 100):
            registry.put_batch([group(f"g{number}", [written(0, 1)])], [PartitionSnapshot(number)])
            registry.put_health(batch_id=number)

    threads = [threading.Thread(target=put, args=(start,)) for start in range(0, 400, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(registry.present().groups) == len(registry.present().lanes) == 400
