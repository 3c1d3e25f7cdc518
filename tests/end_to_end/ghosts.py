"""Create ghosts: records of a deleted group and of a deleted commit whose tombstones are already compacted away.

A monitor meets ghosts if it was stopped for longer than the topic keeps tombstones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import Producer

from assignors.coordinator import coordinator_partition
from streaming.embedded import EmbeddedBroker
from streaming.events import OFFSETS_TOPIC
from tests.end_to_end.conftest import commit, create_topics
from tests.end_to_end.kafka_reference import KafkaReference
from tests.end_to_end.monitor_process import MonitorProcess, until
from tests.streaming.log_records import commit_key, commit_value, group_key, group_value, member_fields

WriteGhost = Callable[[str, bytes, bytes], None]
"""Function that writes a record of a group: (group id, key, value)."""


def write_record(broker: EmbeddedBroker, group_id: str, key: bytes, value: bytes | None) -> None:
    """Write into the group's partition without the coordinator. The broker allows this only to this client id."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "__admin_client"})
    ends = producer.list_topics(OFFSETS_TOPIC).topics[OFFSETS_TOPIC].partitions
    producer.produce(OFFSETS_TOPIC, value, key, partition=coordinator_partition(group_id, len(ends)))
    assert producer.flush(30) == 0


@dataclass(frozen=True)
class Ghosts:
    """Names a group that no coordinator knows, and a real group with a commit that its coordinator does not know."""

    name: str

    @property
    def _real(self) -> str:
        return f"{self.name}-real"

    @property
    def _ghost(self) -> str:
        return f"{self.name}-ghost"

    def appear(self, broker: EmbeddedBroker, write_ghost: WriteGhost) -> None:
        """Write records that the running coordinator never saw, as they remain when the tombstone is compacted away."""
        topic = f"{self.name}-t"
        create_topics(broker, {topic: 2})
        commit(broker, self._real, topic, 4)
        write_ghost(self._ghost, group_key(self._ghost), group_value(3, [member_fields("m", [topic], {topic: [0, 1]})]))
        write_ghost(self._ghost, commit_key(self._ghost, topic, 0), commit_value(5))
        write_ghost(self._real, commit_key(self._real, topic, 1), commit_value(6))

    def wait_until_closed(self, monitor: MonitorProcess) -> None:
        """Check that the group ended with one row, and that its commits and the real group's ghost commit are gone."""
        until("the ghost is gone", lambda: monitor.group_state(self._ghost) is None)
        rows = sorted(monitor.rows_of("group_generations", self._ghost), key=lambda row: row["record_time"])
        assert [(row["state"], row["generation_id"]) for row in rows] == [("Stable", 3), ("Gone", 3)]
        until("its commit is gone", lambda: _offsets(monitor, self._ghost) == {})
        until("the real group's ghost commit is gone", lambda: _offsets(monitor, self._real) == {"0": 4})
        assert monitor.metrics()["rebalance_monitor_group_listing_timestamp_seconds"]

    def check_still_closed(self, monitor: MonitorProcess, kafka_reference: KafkaReference) -> None:
        """Check that the ghosts are absent directly after a restart, and the real group has the commits Kafka knows."""
        assert monitor.group_state(self._ghost) is None
        assert _offsets(monitor, self._ghost) == {}
        known = {str(partition): offset for (_, partition), offset in kafka_reference.committed(self._real).items()}
        assert _offsets(monitor, self._real) == {"0": 4} == known


def _offsets(monitor: MonitorProcess, group_id: str) -> dict[str, float]:
    scraped = monitor.metrics().get("kafka_consumergroup_current_offset", {})
    return {
        dict(labels)["partition"]: offset
        for labels, offset in scraped.items()
        if dict(labels)["consumergroup"] == group_id
    }
