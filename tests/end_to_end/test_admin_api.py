"""Test `source.kind = "admin-api"` on a real broker: the output agrees with Kafka, and unknown values are marked."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from streaming.embedded import EmbeddedBroker
from tests.end_to_end.conftest import Group, create_topics, produce
from tests.end_to_end.kafka_reference import KafkaReference
from tests.end_to_end.monitor_process import MonitorProcess, until
from tests.end_to_end.test_agrees_with_kafka import _agree, _lag_agrees

pytestmark = pytest.mark.slow

POLLED = {"SOURCE__KIND": "admin-api"}


def polling(broker: EmbeddedBroker, folder: Path) -> MonitorProcess:
    """Return a monitor that polls the coordinators."""
    return MonitorProcess(broker.bootstrap_servers, folder, environment=POLLED)


def test_members_assignments_commits_and_lag_agree_with_kafka_without_its_log_and_across_a_kill(
    broker: EmbeddedBroker, kafka_reference: KafkaReference, folder: Path, name: str
):
    """Rules 2 and 3 with the scenario of the log source. After a kill nothing is counted or written twice.

    While the monitor is killed, one group loses a member and the calm group does not change.
    """
    topics = {f"{name}-a": 3, f"{name}-b": 3}
    create_topics(broker, topics)
    group, calm = Group(broker.bootstrap_servers, name), Group(broker.bootstrap_servers, f"{name}-calm")
    monitor = polling(broker, folder)
    for _ in range(2):
        group.join(list(topics))
    calm.join(list(topics))
    try:
        monitor.start().wait_until_ready()
        _agree(monitor, kafka_reference, name, members=2)
        until("imbalance", lambda: monitor.value("rebalance_monitor_member_partitions_max", group=name) == 4)
        # The drift is unknown until the partition counts of the new topics are known.
        drift = "rebalance_monitor_drift_partitions"
        until("no drift", lambda: monitor.value(drift, group=name, strategy="range") == 0)
        group.join(list(topics))
        _agree(monitor, kafka_reference, name, members=3)
        counted = monitor.value("rebalance_monitor_rebalances_total", group=name)
        assert counted is not None
        assert counted >= 1
        _agree(monitor, kafka_reference, calm.group_id, members=1)
        counted_of_calm = monitor.value("rebalance_monitor_rebalances_total", group=calm.group_id)

        monitor.kill()
        rows_before, rows_of_calm = _positions(monitor, name), _positions(monitor, calm.group_id)
        half_written = monitor.folder / "checkpoint" / "feedback" / ".polled-1-2.json.partial"
        half_written.write_bytes(b"half")
        group.leave()
        monitor.start().wait_until_ready()
        assert not half_written.exists()
        _agree(monitor, kafka_reference, name, members=2)
        assert monitor.value("rebalance_monitor_rebalances_total", group=name) == counted + 1
        _agree(monitor, kafka_reference, calm.group_id, members=1)
        assert monitor.value("rebalance_monitor_rebalances_total", group=calm.group_id) == counted_of_calm
        assert _positions(monitor, calm.group_id) == rows_of_calm

        assert monitor.stop() == 0
        monitor.run_command("rebuild")
        monitor.start().wait_until_ready()
        assert monitor.value("rebalance_monitor_rebalances_total", group=name) == counted + 1
        assert len(_positions(monitor, name)) > len(rows_before)
        group.leave_all()
        produce(broker, topics, records=7)
        _agree(monitor, kafka_reference, name, members=0)
        until("lag", lambda: monitor.value("rebalance_monitor_group_lag", group=name) == 6 * 7)
    finally:
        group.leave_all()
        calm.leave_all()
    _lag_agrees(monitor, kafka_reference, name)
    assert monitor.value("rebalance_monitor_empty_transitions_total", group=name) == 1
    _check_unknown_values(monitor, name)
    _check_that_a_deleted_group_ends(broker, monitor, name)
    assert monitor.stop() == 0


def _positions(monitor: MonitorProcess, group_id: str) -> list[tuple[object, object]]:
    rows = [row for row in monitor.rows("group_generations") if row["group_id"] == group_id]
    positions = sorted((row["offsets_topic_partition"], row["offsets_topic_offset"]) for row in rows)
    assert len(positions) == len(set(positions))
    return positions


def _check_unknown_values(monitor: MonitorProcess, group_id: str) -> None:
    """Check rule 2: unknown values are absent in /metrics and named in every row."""
    assert monitor.value("rebalance_monitor_info", source="admin-api") == 1
    unknown = monitor.by_label("rebalance_monitor_source_limitation_info", "capability")
    assert {"generation_id", "leader", "rebalances_between_polls", "sync_time", "transactions"} <= unknown.keys()
    assert monitor.value("rebalance_monitor_group_generation", group=group_id) is None
    assert monitor.value("rebalance_monitor_rebalances_failed_total", group=group_id) is None
    for table in ("group_generations", "assignment_drift", "assignment_imbalance"):
        rows = [row for row in monitor.rows(table) if row["group_id"] == group_id]
        assert rows
        assert {(row["offsets_topic_partition"], row["generation_id"]) for row in rows} == {(-1, None)}
        assert all("generation_id" in row["not_known"] for row in rows)


def _check_that_a_deleted_group_ends(broker: EmbeddedBroker, monitor: MonitorProcess, group_id: str) -> None:
    """Delete a group and check that its metrics end and that its last row has the state Dead."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.delete_groups([group_id])
    admin.close()
    until("its end", lambda: monitor.group_state(group_id) is None)
    until("no lag", lambda: monitor.value("rebalance_monitor_group_lag", group=group_id) is None)
    until("the row", lambda: _last_state(monitor, group_id) == "Dead")


def _last_state(monitor: MonitorProcess, group_id: str) -> object:
    rows = [row for row in monitor.rows("group_generations") if row["group_id"] == group_id]
    return max(rows, key=lambda row: row["offsets_topic_offset"])["state"]
