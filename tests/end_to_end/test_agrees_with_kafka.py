"""Test that the monitor's output for running groups agrees with Kafka's admin API."""

from __future__ import annotations

import pytest

from streaming.embedded import EmbeddedBroker
from tests.end_to_end.conftest import Group, create_topics, produce
from tests.end_to_end.kafka_reference import KafkaReference
from tests.end_to_end.monitor_process import MonitorProcess, until

pytestmark = pytest.mark.slow


def test_members_assignments_commits_and_lag_agree_while_consumers_join_leave_and_commit(
    broker: EmbeddedBroker, kafka_reference: KafkaReference, shared_monitor: MonitorProcess, name: str
):
    """Tables and /metrics agree with the admin API at every stage of a group's life."""
    topics = {f"{name}-a": 3, f"{name}-b": 3}
    create_topics(broker, topics)
    group = Group(broker.bootstrap_servers, name)
    monitor = shared_monitor
    for _ in range(2):
        group.join(list(topics))
    try:
        monitor.wait_until_ready()
        _agree(monitor, kafka_reference, name, members=2)
        # Range gives 4 and 2 for two topics of 3 partitions and 2 members. Roundrobin would give 3 and 3.
        until("imbalance", lambda: monitor.value("rebalance_monitor_member_partitions_max", group=name) == 4)
        drift = "rebalance_monitor_drift_partitions"  # shown as soon as the partition counts of its topics are known
        until("verdict", lambda: monitor.value(drift, group=name, strategy="range") == 0)
        assert monitor.value("rebalance_monitor_drift_partitions", group=name, strategy="roundrobin") > 0

        group.join(list(topics))
        _agree(monitor, kafka_reference, name, members=3)
        group.leave()
        _agree(monitor, kafka_reference, name, members=2)
        group.leave_all()
        produce(broker, topics, records=7)
        _agree(monitor, kafka_reference, name, members=0)
        until("lag", lambda: monitor.value("rebalance_monitor_group_lag", group=name) == 6 * 7)
    finally:
        group.leave_all()
    _lag_agrees(monitor, kafka_reference, name)
    _totals_agree(monitor, kafka_reference, name)
    _check_verdicts(monitor, name)
    _clocks_agree(monitor)


def _clocks_agree(monitor: MonitorProcess) -> None:
    """Check that the clock offset is within its bounds and the log has no warning. Broker and monitor share a clock."""
    until("the clock", lambda: monitor.value("rebalance_monitor_clock_offset_seconds") is not None)
    offset, within = (monitor.value(f"rebalance_monitor_clock_offset_{name}") for name in ("seconds", "within_seconds"))
    assert offset is not None
    assert within is not None
    assert abs(offset) <= within
    assert "the clock of broker" not in monitor.log.read_text()


def _agree(monitor: MonitorProcess, kafka_reference: KafkaReference, group_id: str, members: int) -> None:
    """Wait until the group is settled in Kafka with this number of members, then until the monitor agrees."""
    settled = "Stable" if members else "Empty"
    until(
        f"{members} members in Kafka",
        lambda: _has_state_and_members(kafka_reference.group(group_id), settled, members),
    )
    until("members", lambda: monitor.value("rebalance_monitor_group_members", group=group_id) == members)
    described = kafka_reference.group(group_id)
    until("the row of this generation", lambda: _last_row_agrees(monitor, described, group_id))
    assert monitor.value("kafka_consumergroup_members", consumergroup=group_id) == members


def _has_state_and_members(described: dict[str, object], state: str, members: int) -> bool:
    return described["group_state"] == state and len(described["members"]) == members


def _last_row_agrees(monitor: MonitorProcess, described: dict[str, object], group_id: str) -> bool:
    rows = [row for row in monitor.rows("group_generations") if row["group_id"] == group_id]
    last = max(rows, key=lambda row: row["offsets_topic_offset"])
    ours = {
        member["member_id"]: (
            member["client_id"],
            member["client_host"],
            {(owned["topic"], owned["partition"]) for owned in member["assignment"] or ()},
        )
        for member in last["members"]
    }
    theirs = {
        member["member_id"]: (
            member["client_id"],
            member["client_host"],
            {
                (assigned["topic"], partition)
                for assigned in member["member_assignment"]["assigned_partitions"]
                for partition in assigned["partitions"]
            },
        )
        for member in described["members"]
    }
    return ours == theirs and last["state"] == described["group_state"]


def _lag_agrees(monitor: MonitorProcess, kafka_reference: KafkaReference, group_id: str) -> None:
    committed, lag = kafka_reference.committed(group_id), kafka_reference.lag(group_id)
    assert committed
    scraped = monitor.metrics()
    for (topic, partition), offset in committed.items():
        labels = tuple(sorted({"consumergroup": group_id, "topic": topic, "partition": str(partition)}.items()))
        assert scraped["kafka_consumergroup_current_offset"][labels] == offset
        assert scraped["kafka_consumergroup_lag"][labels] == lag[topic, partition]
        of_partition = tuple(sorted({"topic": topic, "partition": str(partition)}.items()))
        assert scraped["kafka_topic_partition_current_offset"][of_partition] == offset + lag[topic, partition]
    assert scraped["kafka_brokers"] == {(): 1}
    until("the rows of the last lag", lambda: _last_lag(monitor, group_id) == lag)


def _last_lag(monitor: MonitorProcess, group_id: str) -> dict[tuple[str, int], int]:
    rows = [row for row in monitor.rows("group_lag") if row["group_id"] == group_id]
    return {(row["topic"], row["partition"]): row["lag"] for row in sorted(rows, key=lambda row: row["sampled_time"])}


def _totals_agree(monitor: MonitorProcess, kafka_reference: KafkaReference, group_id: str) -> None:
    """Check the counters: the difference of generations, without transitions to Empty. The first record counts 0."""
    rows = monitor.rows_of("group_generations", group_id)
    ours = sorted((row["offsets_topic_offset"], row["generation_id"]) for row in rows)
    generations = kafka_reference.generations(group_id)
    assert [generation for _, generation in ours] == [generation for generation, _ in generations]
    emptied = sum(not has_members for _, has_members in generations[1:])
    difference = generations[-1][0] - generations[0][0]
    assert monitor.value("rebalance_monitor_rebalances_total", group=group_id) == difference - emptied
    assert monitor.value("rebalance_monitor_empty_transitions_total", group=group_id) == emptied


def _check_verdicts(monitor: MonitorProcess, group_id: str) -> None:
    rows = [row for row in monitor.rows("assignment_drift") if row["group_id"] == group_id]
    keys = [(row["offsets_topic_partition"], row["offsets_topic_offset"], row["strategy"]) for row in rows]
    assert len(keys) == len(set(keys))
    own = [row for row in rows if row["is_group_strategy"]]
    assert {row["verdict"] for row in own} <= {"match", "unknown"}
    assert [row for row in own if row["verdict"] == "match"]
