"""`__consumer_offsets` deleted beside or under a monitor: it must not go on as if nothing had been."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError

from streaming.embedded import EmbeddedBroker
from streaming.events import OFFSETS_TOPIC
from tests.end_to_end.conftest import OFFSETS_TOPIC_PARTITIONS, QUICK_BROKER, Group, create_topics
from tests.end_to_end.monitor_process import READY_SECONDS, MonitorProcess, until

pytestmark = pytest.mark.slow

REMEDY = "run `rebalance-monitor rebuild"
"""In the one line that an incident is."""


def test_a_log_created_anew_is_said_in_one_line_not_ready_until_it_is_rebuilt(tmp_path: Path, name: str):
    """Law 2: what other records have the offsets of those that were read is not the present.

    Somebody deleted the topic to be rid of old groups; the next consumer makes it anew, beginning at offset 0. First
    while nobody looks, and the new one has outgrown the old one by the next start; then under a running monitor.
    """
    with EmbeddedBroker(tmp_path / "broker", properties=QUICK_BROKER) as broker:
        create_topics(broker, {name: 2})
        _lives(broker, f"{name}-before", name)
        monitor = MonitorProcess(broker.bootstrap_servers, tmp_path / "monitor").start().wait_until_ready()
        assert monitor.stop() == 0
        old_ends = _ends(broker)
        _delete_offsets_topic(broker)
        while not _has_outgrown(broker, old_ends):
            _lives(broker, f"{name}-before", name)
        group = Group(broker.bootstrap_servers, f"{name}-after")
        group.join([name])
        try:
            _is_told(monitor.start(), times=1)
            assert f"{OFFSETS_TOPIC} was deleted and created anew" in monitor.log.read_text()
            assert monitor.stop() == 0
            monitor.run_command("rebuild")
            monitor.start().wait_until_ready()
            until("the group", lambda: monitor.value("rebalance_monitor_group_members", group=group.group_id) == 1)
            until("its lag", lambda: monitor.value("rebalance_monitor_group_lag", group=group.group_id) == 0)
            group.leave_all()
            _delete_offsets_topic(broker)
            group.join([name])
            _is_told(monitor, times=2)
        finally:
            group.leave_all()
        assert monitor.stop() == 0
        assert monitor.log.read_text().count(REMEDY) == 2


def _is_told(monitor: MonitorProcess, times: int) -> None:
    until("the line", lambda: monitor.log.read_text().count(REMEDY) == times, READY_SECONDS)
    until("not ready", lambda: monitor.value("rebalance_monitor_ready") == 0)


def _delete_offsets_topic(broker: EmbeddedBroker) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)) as admin:
        admin.delete_topics([OFFSETS_TOPIC])


def _ends(broker: EmbeddedBroker) -> Mapping[int, int]:
    """Where the log ends, by partition."""
    asked = {TopicPartition(OFFSETS_TOPIC, number): OffsetSpec.LATEST for number in range(OFFSETS_TOPIC_PARTITIONS)}
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)) as admin:
        return {at.partition: answer.offset for at, answer in admin.list_partition_offsets(asked).items()}


def _has_outgrown(broker: EmbeddedBroker, old_ends: Mapping[int, int]) -> bool:
    """By offsets alone it looks right then."""
    with suppress(KafkaError):  # until it was created anew
        return all(end > old_ends[number] for number, end in _ends(broker).items() if old_ends[number])
    return False


def _lives(broker: EmbeddedBroker, group_id: str, topic: str) -> None:
    """A group that makes the log longer than the next one will."""
    for _ in range(3):
        group = Group(broker.bootstrap_servers, group_id)
        group.join([topic])
        with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)) as admin:
            until("commits", lambda: _commits(admin, group_id) == 2)
        group.leave_all()


def _commits(admin: KafkaAdminClient, group_id: str) -> int:
    with suppress(KafkaError):  # until the group's coordinator is there
        return len(admin.list_group_offsets([group_id])[group_id])
    return 0
