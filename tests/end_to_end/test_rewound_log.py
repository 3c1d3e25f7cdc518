"""`__consumer_offsets` deleted under a running monitor: it must not go on as if nothing had been."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from streaming.embedded import EmbeddedBroker
from streaming.events import OFFSETS_TOPIC
from tests.end_to_end.conftest import QUICK_BROKER, Group, create_topics
from tests.end_to_end.monitor_process import MonitorProcess, until

pytestmark = pytest.mark.slow


def test_a_log_created_anew_is_said_in_one_line_not_ready_until_it_is_rebuilt(tmp_path: Path, name: str):
    """Law 2: what other records have the offsets of those that were read is not the present.

    Somebody deleted the topic to be rid of old groups; the next consumer makes it anew, beginning at offset 0.
    """
    with EmbeddedBroker(tmp_path / "broker", properties=QUICK_BROKER) as broker:
        create_topics(broker, {name: 2})
        _lives(broker, f"{name}-before", name)
        monitor = MonitorProcess(broker.bootstrap_servers, tmp_path / "monitor").start().wait_until_ready()
        with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)) as admin:
            admin.delete_topics([OFFSETS_TOPIC])
        group = Group(broker.bootstrap_servers, f"{name}-after")
        group.join([name])
        try:
            until("not ready", lambda: monitor.value("rebalance_monitor_ready") == 0)
            until("the line", lambda: f"{OFFSETS_TOPIC} ends before where it was read to" in monitor.log.read_text())
            assert monitor.stop() == 0
            monitor.run_command("rebuild")
            monitor.start().wait_until_ready()
            until("the group", lambda: monitor.value("rebalance_monitor_group_members", group=group.group_id) == 1)
            until("its lag", lambda: monitor.value("rebalance_monitor_group_lag", group=group.group_id) == 0)
        finally:
            group.leave_all()
        assert monitor.log.read_text().count("ends before where it was read to") == 1
        assert monitor.stop() == 0


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
