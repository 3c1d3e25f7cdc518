"""Test undecodable records, open transactions, unreachable brokers, and starts that must be refused."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as LibrdkafkaTopicPartition
from deltalake import write_deltalake

from assignors.coordinator import coordinator_partition
from streaming.config.settings import KafkaSettings
from streaming.embedded import EmbeddedBroker
from streaming.embedded.ports import free_port
from streaming.group.listing import Unanswered
from streaming.run.query.source_group import NoCoordinatorError, source_group
from streaming.sampling.connection import Connection
from streaming.sampling.groups import Groups
from tests.end_to_end.conftest import (
    HOSTILE_PARTITION,
    OFFSETS_TOPIC_PARTITIONS,
    Group,
    LostBroker,
    calm_group,
    create_topics,
    is_in_transaction,
)
from tests.end_to_end.monitor_process import MonitorProcess, until
from tests.streaming.log_records import group_key, group_value

pytestmark = pytest.mark.slow

HOSTILE = (
    (b"\x00\x63nobody knows type 99", b"\x00\x00"),
    (b"\x00\x01\x00\x05gro", b"\x00\x03"),
    (b"\x00\x02\x00\x01g", b"\x00\x09 a value of version 9"),
    (b"", b""),
)


def test_it_lives_through_hostile_records_open_transactions_and_a_lost_broker(lost_broker: LostBroker, name: str):
    """Rule 4: undecodable records become rows and a counter by reason. Rule 2: blocked groups are unknown."""
    broker, monitor = lost_broker.broker, lost_broker.monitor
    create_topics(broker, {name: 3})
    group = Group(broker.bootstrap_servers, calm_group(name))
    group.join([name])
    try:
        monitor.wait_until_ready()
        until("members", partial(_has_members, monitor, group.group_id, 1))
        _a_second_monitor_on_the_same_checkpoint_is_refused(monitor)
        _a_second_checkpoint_over_the_same_tables_is_refused(monitor)
        _hostile_records_are_quarantined(monitor, broker)
        _records_in_a_foreign_partition_do_not_freeze_the_group(monitor, broker, group, name)
        _an_open_transaction_makes_its_groups_unknown(monitor, broker, group.group_id, name)
        broker.kill()
        until("not ready", lambda: monitor.alive() and monitor.value("rebalance_monitor_ready") == 0)
        assert monitor.value("rebalance_monitor_group_lag", group=group.group_id) != -1
        broker.start()
        until("ready again", lambda: monitor.alive() and monitor.value("rebalance_monitor_ready") == 1, 120)
        assert monitor.value("rebalance_monitor_group_generation", group=group.group_id) is not None
        _the_source_uses_a_coordinator_that_answers(broker)
    finally:
        group.leave_all()


def _the_source_uses_a_coordinator_that_answers(broker: EmbeddedBroker) -> None:
    """Check that the source's group has a coordinator that answers.

    The coordinator of the hostile partition never answers. Spark's Kafka source once waited for it forever.
    """
    settings = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
    with closing(Connection(settings, request_timeout_seconds=10)) as connection:
        groups = Groups(connection, lambda: 0)
        candidates = [f"nobody-{number}" for number in range(20)]
        answers = groups.group_offsets(candidates)
        silent = {group_id for group_id, answer in answers.items() if isinstance(answer, Unanswered)}
        assert {coordinator_partition(group_id, OFFSETS_TOPIC_PARTITIONS) for group_id in silent} == {HOSTILE_PARTITION}
        assert source_group(groups, threading.Event(), candidates) in answers.keys() - silent
        stopped = threading.Event()
        stopped.set()
        with pytest.raises(NoCoordinatorError, match="no group coordinator answers: "):
            source_group(groups, stopped, silent)


def _a_second_monitor_on_the_same_checkpoint_is_refused(monitor: MonitorProcess) -> None:
    error = monitor.refused_command("run")
    assert error.startswith("Error: checkpoint")
    assert f"in use by process {monitor.process.pid}" in error
    assert len(error.splitlines()) == 1


def _a_second_checkpoint_over_the_same_tables_is_refused(monitor: MonitorProcess) -> None:
    """Check that it is refused. It would write every row again, because Delta identifies a batch by its checkpoint."""
    tables = {"PATHS__TABLES": str(monitor.folder / "tables")}
    second = MonitorProcess(monitor.bootstrap_servers, monitor.folder.with_name("second"), tables)
    error = second.refused_command("run")
    assert f"process {monitor.process.pid} on" in error
    assert "stop one of the two monitors, or set a different paths.tables for this monitor" in error
    assert len(error.splitlines()) == 1


def _hostile_records_are_quarantined(monitor: MonitorProcess, broker: EmbeddedBroker) -> None:
    # The broker lets only clients with this id write to its internal topics.
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "__admin_client"})
    sent: dict[tuple[int, int], tuple[bytes, bytes]] = {}

    def note(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        sent[message.partition(), message.offset()] = (message.key(), message.value())

    for key, value in HOSTILE:
        producer.produce("__consumer_offsets", key=key, value=value, partition=HOSTILE_PARTITION, on_delivery=note)
    assert producer.flush(30) == 0
    until("the quarantine", lambda: len(monitor.rows("quarantine")) == len(HOSTILE))
    rows = monitor.rows("quarantine")
    assert {
        (row["offsets_topic_partition"], row["offsets_topic_offset"]): (row["key"], row["value"]) for row in rows
    } == sent
    skipped = monitor.by_label("rebalance_monitor_records_skipped_total", "reason")
    assert skipped == {reason: [row["reason"] for row in rows].count(reason) for reason in {r["reason"] for r in rows}}
    assert {"unknown_record_type", "truncated", "unknown_value_version"} <= set(skipped)


def _records_in_a_foreign_partition_do_not_freeze_the_group(
    monitor: MonitorProcess, broker: EmbeddedBroker, group: Group, topic: str
) -> None:
    """Write the group's record into a foreign partition and check that the group is still updated.

    The copies have higher offsets. The monitor once ignored the group's own records because of that.
    """
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "__admin_client"})
    for _ in range(50):
        producer.produce("__consumer_offsets", group_value(99), group_key(group.group_id), HOSTILE_PARTITION)
    assert producer.flush(30) == 0
    reason = {"reason": "foreign_partition"}
    until("they are counted", lambda: monitor.value("rebalance_monitor_records_skipped_total", **reason) == 50)
    group.join([topic])
    until("the second member", partial(_has_members, monitor, group.group_id, 2))
    group.leave()
    until("one member again", partial(_has_members, monitor, group.group_id, 1))
    rows = [row for row in monitor.rows("group_generations") if row["group_id"] == group.group_id]
    assert HOSTILE_PARTITION not in {row["offsets_topic_partition"] for row in rows}
    assert monitor.log.read_text().count("records of groups whose records belong to other partitions") == 1


def _has_members(monitor: MonitorProcess, group_id: str, members: int) -> bool:
    return monitor.value("rebalance_monitor_group_members", group=group_id) == members


def _an_open_transaction_makes_its_groups_unknown(
    monitor: MonitorProcess, broker: EmbeddedBroker, group_id: str, topic: str
) -> None:
    # The transaction's commits go to the group's partition of __consumer_offsets.
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": group_id})
    producer.init_transactions()
    other_group = next(
        f"{group_id}-{number}"
        for number in range(100)
        if coordinator_partition(f"{group_id}-{number}", OFFSETS_TOPIC_PARTITIONS)
        == coordinator_partition(group_id, OFFSETS_TOPIC_PARTITIONS)
    )
    committing = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": other_group})
    for offset, end in ((5, producer.abort_transaction), (7, producer.commit_transaction)):
        offsets = [LibrdkafkaTopicPartition(topic, 0, offset)]
        until("the coordinator", partial(is_in_transaction, producer, offsets, committing))
        until("unknown", lambda: monitor.group_state(group_id) == "Unknown")
        assert monitor.value("rebalance_monitor_group_lag", group=group_id) is None
        assert monitor.value("rebalance_monitor_group_members", group=group_id) is None
        end()
        until("known again", lambda: monitor.group_state(group_id) == "Stable")
    committing.close()
    labels = {"consumergroup": other_group, "topic": topic, "partition": "0"}
    until("the committed one", lambda: monitor.value("kafka_consumergroup_current_offset", **labels) == 7)
    assert 5 not in {row["committed_offset"] for row in monitor.rows("group_lag") if row["group_id"] == other_group}


def test_an_unreachable_broker_is_one_clear_line_and_an_exit_code(tmp_path: Path):
    """After the configured timeout the monitor prints one line and ends with an exit code other than 0."""
    unreachable = MonitorProcess(
        f"127.0.0.1:{free_port()}", tmp_path / "monitor", environment={"KAFKA__CONNECT_TIMEOUT_SECONDS": "2"}
    )
    error = unreachable.refused_command("run")
    assert error.startswith("Error: no broker at 127.0.0.1:")
    assert "kafka.bootstrap_servers" in error
    assert len(error.splitlines()) == 1


def test_tables_and_checkpoints_of_another_version_are_refused_by_name(lost_broker: LostBroker, tmp_path: Path):
    """The monitor refuses a folder of an incompatible version, does not change it, and names the remedy."""
    monitor = MonitorProcess(lost_broker.broker.bootstrap_servers, tmp_path / "monitor")
    table = monitor.folder / "tables" / "group_lag"
    write_deltalake(str(table), pa.table({"not": ["ours"]}))
    error = monitor.refused_command("run")
    assert f"{table} has schema version none" in error

    checkpoint = monitor.folder / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / "monitor.json").write_text(json.dumps({"version": 99}))
    error = monitor.refused_command("run")
    assert "has version 99" in error
    assert "rebalance-monitor rebuild" in error
    assert len(error.splitlines()) == 1
