"""Tests of unowned partitions from a sample to the condition, the report and the metric.

The sampler and the feedback are the real ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from assignors import assignor_named
from streaming.evaluation.group_update import apply_batch
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.report import GroupReport
from streaming.events import GroupMetadataWritten, Position, TopicMetadata
from streaming.protocol.classic import ClassicMember
from streaming.run.samples.feedback_writer import pending_by_group
from tests.streaming.groups import member, metadata
from tests.streaming.prometheus.test_metrics import named, scraped
from tests.streaming.run.samples.test_conditions import Cluster, Monitor

UNOWNED = "unowned_partitions"


class GrowingCluster(Cluster):
    """A cluster whose topics are created, deleted and extended."""

    def __init__(self) -> None:
        super().__init__()
        self.partitions: dict[str, int | None] = {"orders": 2}

    def sample(self, topics: Iterable[str]) -> ClusterSample:
        """Return every topic with its known offsets."""
        base_sample = super().sample(topics)
        known = {topic: TopicMetadata(count, self.now_ms) for topic, count in self.partitions.items()}
        ends = {at: end for at, end in self.end_offsets.items() if at[1] < (self.partitions.get(at[0]) or 0)}
        return replace(base_sample, topics=known, end_offsets=ends, log_start_offsets=dict.fromkeys(ends, 0))


class WatchedGroup(Monitor):
    """One group `g`. After every sample it receives the facts that the sampler found."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.cluster: GrowingCluster = GrowingCluster()
        self.start()
        self.sampler.take_sample()

    def write_generation(self, number: int, *members: ClassicMember, protocol: str = "range") -> None:
        """Write a generation now, and read it at once."""
        position = Position(0, self.cluster.log_end, self.cluster.now_ms)
        event = GroupMetadataWritten(position, metadata(number, members, protocol=protocol))
        self._apply([event])
        self.cluster.log_end += 1
        self.read()

    def pass_minutes(self, minutes: int, records_a_minute: int = 0) -> None:
        """Let time pass with one sample per minute. The group receives the facts of each sample."""
        for _ in range(minutes):
            super().pass_minutes(1, records_a_minute)
            view = self.monitor_state.view()
            assert view.sample is not None
            for facts in pending_by_group(view, view.sample).values():
                self._apply(facts)

    def report(self) -> GroupReport:
        """Return the report of the group."""
        return self.monitor_state.reports(self.monitor_state.view(), is_fresh=True)["g"]

    def unowned(self) -> tuple[int | None, int | None]:
        """Return the number of unowned partitions, and of records that wait in them."""
        report = self.report()
        return report.assignment.unowned_partitions, report.unowned_records

    def _apply(self, events: Sequence[object]) -> None:
        known = self.records.get("g")
        if known is None:
            self.write(group="g")
            known = self.records["g"]
        self.records["g"] = apply_batch(known, events, [assignor_named("range")]).record  # type: ignore[arg-type]
        self.monitor_state.put_batch([self.records["g"]], [])


def member_with(name: str, *held: int, topics: Sequence[str] = ("orders",), owned: Sequence[int] = ()) -> ClassicMember:
    """Return a member that owns these partitions of `orders`."""
    return member(name, {"orders": held}, topics, owned=[("orders", number) for number in owned])


@pytest.fixture
def group(tmp_path: Path) -> WatchedGroup:
    return WatchedGroup(tmp_path)


def test_a_topic_grows_and_the_client_does_not_notice(group: WatchedGroup) -> None:
    """For an hour the monitor showed `match`, lag 0 and no unowned partition.

    Meanwhile records waited in the new partitions.
    """
    group.write_generation(1, member_with("a", 0, 1))
    group.pass_minutes(2)
    assert group.unowned() == (0, None)
    group.cluster.partitions["orders"] = 4
    group.cluster.end_offsets |= {("orders", 2): 10, ("orders", 3): 5}
    group.pass_minutes(2)
    assert group.unowned() == (2, 15)
    assert group.active_conditions() == {}, "a client may take five minutes to notice"
    group.pass_minutes(5)
    assert group.active_conditions() == {
        UNOWNED: "2 partitions without an owner for 6 minutes: orders-2, orders-3 (15 records wait)"
    }
    assert named(scraped(group.monitor_state), "rebalance_monitor_unowned_records") == {"group=g": 15}
    assert [trouble.word for trouble in group.report().troubles] == ["unowned partitions"]
    group.write_generation(2, member_with("a", 0, 1, 2, 3))
    group.pass_minutes(1)
    assert (group.active_conditions(), group.report().assignment.unowned_partitions) == ({}, 0)


def test_committed_partitions_count_with_their_lag(group: WatchedGroup) -> None:
    """Records that were read before the partition lost its owner do not wait."""
    group.cluster.end_offsets |= {("orders", 1): 100}
    group.commit(p1=70)
    group.write_generation(1, member_with("a", 0), protocol="mine")
    group.pass_minutes(7)
    assert group.active_conditions() == {
        UNOWNED: "1 partition without an owner for 6 minutes: orders-1 (30 records wait)"
    }


def test_an_unknown_offset_is_not_zero_records(group: WatchedGroup) -> None:
    """The end offset of a partition without a leader is unknown."""
    del group.cluster.end_offsets["orders", 1]
    group.write_generation(1, member_with("a", 0), protocol="mine")
    group.pass_minutes(7)
    assert group.active_conditions()[UNOWNED].endswith("orders-1 (unknown number of waiting records)")
    assert group.report().unowned_records is None


def test_a_deleted_topic_causes_no_condition(group: WatchedGroup) -> None:
    """Three partitions of a deleted topic were unowned for 600 minutes, although the next sample lacked the topic."""
    both = ("orders", "gone")
    group.cluster.partitions["gone"] = 3
    group.write_generation(1, member("a", {"orders": [0, 1], "gone": [0, 1, 2]}, both))
    group.pass_minutes(2)
    group.cluster.now_ms += 1
    group.write_generation(2, member_with("a", 0, 1, topics=both))
    group.cluster.partitions["gone"] = None
    for _ in range(12):
        group.pass_minutes(1)
        assert (group.active_conditions(), group.report().assignment.unowned_partitions) == ({}, 0)
        assert group.report().troubles == ()


def test_a_restart_does_not_reset_the_time_without_an_owner(group: WatchedGroup) -> None:
    """A monitor that restarts every four minutes must still report the partition."""
    group.write_generation(1, member_with("a", 0), protocol="mine")
    group.pass_minutes(4)
    group.start()
    group.pass_minutes(3)
    assert [*group.active_conditions()] == [UNOWNED]


def test_rebalances_do_not_reset_the_time_without_an_owner(group: WatchedGroup) -> None:
    """The group rebalances every three minutes and leaves out the partition each time."""
    for number in range(1, 5):
        group.write_generation(number, member_with("a", 0), protocol="mine")
        group.pass_minutes(3)
    assert [*group.active_conditions()] == [UNOWNED]


def test_a_withheld_partition_is_unowned_only_if_the_next_cooperative_round_never_comes(group: WatchedGroup) -> None:
    """franz-go issue 686: the round that assigns the revoked partitions never came."""
    group.write_generation(1, member_with("a", 0, 1), protocol="cooperative-sticky")
    group.pass_minutes(1)
    group.write_generation(2, member_with("a", 0, owned=[0, 1]), member_with("b"), protocol="cooperative-sticky")
    group.pass_minutes(4)
    assert (group.active_conditions(), group.report().assignment.unowned_partitions) == ({}, 0)
    group.pass_minutes(3)
    assert [*group.active_conditions()] == [UNOWNED]


def test_the_report_and_the_metrics_count_a_withheld_partition_as_soon_as_the_condition_is_active(
    group: WatchedGroup,
) -> None:
    """The next cooperative round never came. The condition was active, but the report and the metrics had 0 records.

    So the alert was only a warning, and did not show that records waited.
    """
    group.cluster.end_offsets["orders", 1] = 500_000
    group.write_generation(1, member_with("a", 0, 1), protocol="cooperative-sticky")
    group.pass_minutes(1)
    group.write_generation(2, member_with("a", 0, owned=[0, 1]), member_with("b"), protocol="cooperative-sticky")
    group.pass_minutes(4)
    assert group.report().assignment.unowned_partitions == 0
    group.pass_minutes(3)
    assert group.active_conditions() == {
        UNOWNED: "1 partition without an owner for 7 minutes: orders-1 (500,000 records wait)"
    }
    assert group.unowned() == (1, 500_000)
    metrics = scraped(group.monitor_state)
    assert named(metrics, "rebalance_monitor_unowned_partitions") == {"group=g": 1}
    assert named(metrics, "rebalance_monitor_unowned_records") == {"group=g": 500_000}
    group.write_generation(3, member_with("a", 0), member_with("b", 1), protocol="cooperative-sticky")
    assert group.report().assignment.unowned_partitions == 0, "the record is newer than the sample"


def test_the_condition_neither_begins_nor_ends_during_a_rebalance(group: WatchedGroup) -> None:
    """The last record does not show the assignment that the rebalance will make."""
    group.cluster.states = {"g": "Stable"}
    group.write_generation(1, member_with("a", 0), protocol="mine")
    group.pass_minutes(7)
    assert [*group.active_conditions()] == [UNOWNED]
    group.cluster.states = {"g": "PreparingRebalance"}
    group.pass_minutes(1)
    assert group.active_conditions() == {}
    assert [is_active for _, is_active, _ in group.condition_changes()] == [True], "unknown does not end a condition"
    group.cluster.states = {"g": "Stable"}
    group.pass_minutes(1)
    assert [*group.active_conditions()] == [UNOWNED]


def test_all_partitions_of_a_topic_that_the_leader_ignores_are_unowned(group: WatchedGroup) -> None:
    """KafkaJS's leader ignores the members' subscriptions. One topic was not read, and lag was 0 without a trouble."""
    group.cluster.partitions["ignored"] = 2
    group.cluster.end_offsets |= {("ignored", 0): 3, ("ignored", 1): 4}
    subscribed = member_with("b", topics=["orders", "ignored"])
    group.write_generation(1, member_with("a", 0, 1), subscribed, protocol="RoundRobinAssigner")
    group.pass_minutes(7)
    assert group.active_conditions()[UNOWNED] == (
        "2 partitions without an owner for 6 minutes: ignored-0, ignored-1 (7 records wait)"
    )
