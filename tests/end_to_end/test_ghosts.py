"""An outage longer than the tombstones' life must leave no ghosts: what coordinators know no more is closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from assignors.coordinator import coordinator_partition
from streaming.embedded import EmbeddedBroker
from streaming.events import OFFSETS_TOPIC
from tests.end_to_end.conftest import create_topics, produce
from tests.end_to_end.monitor_process import MonitorProcess, until
from tests.end_to_end.what_kafka_says import WhatKafkaSays
from tests.streaming.log_records import commit_key, commit_value, group_key, group_value, member_fields

pytestmark = pytest.mark.slow


@pytest.fixture
def haunt(broker: EmbeddedBroker) -> Iterator[Callable[[str, bytes, bytes], None]]:
    """Write ghosts, and lay them at the end, whatever came of the test: others' monitors read the same topic."""
    keys: list[tuple[str, bytes]] = []

    def write(group_id: str, key: bytes, value: bytes) -> None:
        keys.append((group_id, key))
        write_record(broker, group_id, key, value)

    yield write
    for group_id, key in keys:
        write_record(broker, group_id, key, None)


def write_record(broker: EmbeddedBroker, group_id: str, key: bytes, value: bytes | None) -> None:
    """Write into the group's partition behind the coordinator's back, as only a client of this name may."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "__admin_client"})
    ends = producer.list_topics(OFFSETS_TOPIC).topics[OFFSETS_TOPIC].partitions
    producer.produce(OFFSETS_TOPIC, value, key, partition=coordinator_partition(group_id, len(ends)))
    assert producer.flush(30) == 0


def commit(broker: EmbeddedBroker, group_id: str, topic: str, offset: int) -> None:
    """Commit as a client does, through the coordinator."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group_id})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_groups_and_commits_that_the_coordinator_does_not_know_are_closed_and_all_others_stay(
    broker: EmbeddedBroker,
    kafka_says: WhatKafkaSays,
    haunt: Callable[[str, bytes, bytes], None],
    folder: Path,
    name: str,
):
    """A record the running coordinator never saw is what a deleted group's is once its tombstone is compacted away."""
    topic, real, ghost = f"{name}-t", f"{name}-real", f"{name}-ghost"
    create_topics(broker, {topic: 2})
    produce(broker, {topic: 2}, records=9)
    commit(broker, real, topic, 4)
    haunt(ghost, group_key(ghost), group_value(3, [member_fields("m", [topic], {topic: [0, 1]})]))
    haunt(ghost, commit_key(ghost, topic, 0), commit_value(5))
    haunt(real, commit_key(real, topic, 1), commit_value(6))
    settings = {"SAMPLING__RECONCILE_SECONDS": "1"}
    monitor = MonitorProcess(broker.bootstrap_servers, folder, settings).start().wait_until_ready()

    until("the ghost is gone", lambda: monitor.by_state(ghost) is None)
    rows = [row for row in monitor.rows("group_generations") if row["group_id"] == ghost]
    rows.sort(key=lambda row: str(row["record_time"]))
    assert [(row["state"], row["generation_id"]) for row in rows] == [("Stable", 3), ("Gone", 3)]
    until("its commit is gone", lambda: _offsets(monitor, ghost) == {})
    until("the real group's ghost commit is gone", lambda: _offsets(monitor, real) == {"0": 4})
    assert monitor.metrics()["rebalance_monitor_group_listing_age_seconds"]

    monitor.kill()
    monitor.start().wait_until_ready()
    assert monitor.by_state(ghost) is None, "what was closed stays closed over a restart"
    assert _offsets(monitor, ghost) == {}
    assert (
        _offsets(monitor, real)
        == {"0": 4}
        == {str(partition): offset for (_, partition), offset in kafka_says.committed(real).items()}
    )
    assert monitor.stop() == 0


def _offsets(monitor: MonitorProcess, group_id: str) -> dict[str, float]:
    scraped = monitor.metrics().get("kafka_consumergroup_current_offset", {})
    return {
        dict(labels)["partition"]: offset
        for labels, offset in scraped.items()
        if dict(labels)["consumergroup"] == group_id
    }
