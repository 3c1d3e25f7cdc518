"""`__consumer_offsets` deleted beside or under a monitor: it must not go on as if nothing had been."""

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
"""In the one line that an incident is."""


def test_a_log_created_anew_is_said_in_one_line_not_ready_until_it_is_rebuilt(lost_broker: LostBroker, name: str):
    """Rule 2: what other records have the offsets of those that were read is not the present.

    Somebody deleted the topic to be rid of old groups; the next consumer makes it anew, beginning at offset 0. First
    while nobody looks, and the new one has outgrown the old one by the next start; then under a running monitor.
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
        broker.start()  # or it shares groups among as many partitions as there were
        group.join([name])
        _outgrow(broker, old_ends)
        _is_told(monitor.start(), times=1)
        assert f"{OFFSETS_TOPIC} was deleted and recreated" in monitor.log.read_text()
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
    """Where the log ends, by partition; raises KafkaError until it was created anew."""
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)) as admin:
        (described,) = admin.describe_topics([OFFSETS_TOPIC])
        numbers = [partition["partition_index"] for partition in described["partitions"]]
        asked = {TopicPartition(OFFSETS_TOPIC, number): OffsetSpec.LATEST for number in numbers}
        return {at.partition: answer.offset for at, answer in admin.list_partition_offsets(asked).items()}


def _outgrow(broker: EmbeddedBroker, old_ends: Mapping[int, int]) -> None:
    """Make each partition longer than it was, by tombstones: by offsets alone the log looks right then."""
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
