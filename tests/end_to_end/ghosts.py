"""Ghosts: what an outage longer than the tombstones' life leaves of a deleted group and of a commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import Producer

from assignors.coordinator import coordinator_partition
from streaming.embedded import EmbeddedBroker
from streaming.events import OFFSETS_TOPIC
from tests.end_to_end.conftest import commit, create_topics
from tests.end_to_end.monitor_process import MonitorProcess, until
from tests.end_to_end.what_kafka_says import WhatKafkaSays
from tests.streaming.log_records import commit_key, commit_value, group_key, group_value, member_fields

Haunt = Callable[[str, bytes, bytes], None]
"""Writes a record of a group."""


def write_record(broker: EmbeddedBroker, group_id: str, key: bytes, value: bytes | None) -> None:
    """Write into the group's partition behind the coordinator's back, as only a client of this name may."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "__admin_client"})
    ends = producer.list_topics(OFFSETS_TOPIC).topics[OFFSETS_TOPIC].partitions
    producer.produce(OFFSETS_TOPIC, value, key, partition=coordinator_partition(group_id, len(ends)))
    assert producer.flush(30) == 0


@dataclass(frozen=True)
class Ghosts:
    """A group that no coordinator knows, and a commit of a real group that its coordinator does not know."""

    name: str

    @property
    def _real(self) -> str:
        return f"{self.name}-real"

    @property
    def _ghost(self) -> str:
        return f"{self.name}-ghost"

    def appear(self, broker: EmbeddedBroker, haunt: Haunt) -> None:
        """A record the running coordinator never saw is what is left once the tombstone is compacted away."""
        topic = f"{self.name}-t"
        create_topics(broker, {topic: 2})
        commit(broker, self._real, topic, 4)
        haunt(self._ghost, group_key(self._ghost), group_value(3, [member_fields("m", [topic], {topic: [0, 1]})]))
        haunt(self._ghost, commit_key(self._ghost, topic, 0), commit_value(5))
        haunt(self._real, commit_key(self._real, topic, 1), commit_value(6))

    def are_closed(self, monitor: MonitorProcess) -> None:
        """The group is gone by one row, its commits are gone, and so is the real group's that is none."""
        until("the ghost is gone", lambda: monitor.by_state(self._ghost) is None)
        rows = sorted(monitor.rows_of("group_generations", self._ghost), key=lambda row: row["record_time"])
        assert [(row["state"], row["generation_id"]) for row in rows] == [("Stable", 3), ("Gone", 3)]
        until("its commit is gone", lambda: _offsets(monitor, self._ghost) == {})
        until("the real group's ghost commit is gone", lambda: _offsets(monitor, self._real) == {"0": 4})
        assert monitor.metrics()["rebalance_monitor_group_listing_age_seconds"]

    def stay_closed(self, monitor: MonitorProcess, kafka_says: WhatKafkaSays) -> None:
        """What was closed is closed after a restart, at once; of the real group all is there that Kafka knows."""
        assert monitor.by_state(self._ghost) is None
        assert _offsets(monitor, self._ghost) == {}
        known = {str(partition): offset for (_, partition), offset in kafka_says.committed(self._real).items()}
        assert _offsets(monitor, self._real) == {"0": 4} == known


def _offsets(monitor: MonitorProcess, group_id: str) -> dict[str, float]:
    scraped = monitor.metrics().get("kafka_consumergroup_current_offset", {})
    return {
        dict(labels)["partition"]: offset
        for labels, offset in scraped.items()
        if dict(labels)["consumergroup"] == group_id
    }
