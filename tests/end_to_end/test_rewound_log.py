"""Test that the monitor notices that `__consumer_offsets` was deleted and recreated, while stopped or running."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError

from streaming.embedded import EmbeddedBroker
from streaming.events import OFFSETS_TOPIC
from tests.end_to_end.conftest import Group, LostBroker, calm_group, commit, create_topics
from tests.end_to_end.monitor_process import READY_SECONDS, MonitorProcess, until
from tests.end_to_end.test_grown_log import GROWN
from tests.streaming.log_records import commit_key

pytestmark = pytest.mark.slow

REMEDY = "run `rebalance-monitor rebuild"
"""Part of the log line that each incident writes once."""


def test_a_recreated_log_is_one_log_line_and_not_ready_until_rebuild(lost_broker: LostBroker, name: str):
    """Rule 2: if different records have the offsets that were read, the monitor's state is not the present.

    An operator deletes the topic to remove old groups. The next consumer creates the topic again, from offset 0. The
    test does this first while the monitor is stopped, and the new log is longer than the old one at the next start.
    Then it does the same while the monitor runs.
    """
    broker, monitor = lost_broker.broker, lost_broker.monitor
    create_topics(broker, {name: 2})
    group = Group(broker.bootstrap_servers, f"{name}-after")
    try:
        commit(broker, calm_group(f"{name}-before", GROWN), name, 1)
        monitor.wait_until_ready()
        assert monitor.stop() == 0
        old_ends = _ends(broker)
        _delete_offsets_topic(broker)
        broker.kill()
        broker.start()  # without a restart the broker would use the old partition count
        group.join([name])
        _outgrow(broker, old_ends)
        _wait_for_log_line(monitor.start(), times=1)
        assert f"{OFFSETS_TOPIC} was deleted and recreated" in monitor.log.read_text()
        assert monitor.stop() == 0
        monitor.run_command("rebuild")
        monitor.start().wait_until_ready()
        until("the group", lambda: monitor.value("rebalance_monitor_group_members", group=group.group_id) == 1)
        until("its lag", lambda: monitor.value("rebalance_monitor_group_lag", group=group.group_id) == 0)
        group.leave_all()
        _delete_offsets_topic(broker)
        group.join([name])
        _wait_for_log_line(monitor, times=2)
    finally:
        group.leave_all()
    assert monitor.stop() == 0
    assert monitor.log.read_text().count(REMEDY) == 2


def _wait_for_log_line(monitor: MonitorProcess, times: int) -> None:
    until("the log line", lambda: monitor.log.read_text().count(REMEDY) == times, READY_SECONDS)
    until("not ready", lambda: monitor.value("rebalance_monitor_ready") == 0)


def _delete_offsets_topic(broker: EmbeddedBroker) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)) as admin:
        admin.delete_topics([OFFSETS_TOPIC])


def _ends(broker: EmbeddedBroker) -> Mapping[int, int]:
    """Return the end offset of each partition. Raise KafkaError until the topic has been recreated."""
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)) as admin:
        (described,) = admin.describe_topics([OFFSETS_TOPIC])
        numbers = [partition["partition_index"] for partition in described["partitions"]]
        asked = {TopicPartition(OFFSETS_TOPIC, number): OffsetSpec.LATEST for number in numbers}
        return {at.partition: answer.offset for at, answer in admin.list_partition_offsets(asked).items()}


def _outgrow(broker: EmbeddedBroker, old_ends: Mapping[int, int]) -> None:
    """Write tombstones until each partition is longer than before. Then its offsets alone do not show the deletion."""
    ends = until("the new log", lambda: _new_ends(broker, old_ends))
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "__admin_client"})
    for number, end in ends.items():
        for _ in range(old_ends[number] - end + 1):
            producer.produce(OFFSETS_TOPIC, None, commit_key("nobody", "nothing"), number)
    assert producer.flush(30) == 0


def _new_ends(broker: EmbeddedBroker, old_ends: Mapping[int, int]) -> Mapping[int, int]:
    with suppress(KafkaError):
        ends = _ends(broker)
        return ends if ends != old_ends else {}
    return {}
