"""Test that groups are still updated after `__consumer_offsets` got more partitions and groups moved to new ones."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial

import pytest
from kafka import KafkaAdminClient

from assignors.coordinator import coordinator_partition
from streaming.embedded import EmbeddedBroker
from streaming.events import OFFSETS_TOPIC
from tests.end_to_end.conftest import OFFSETS_TOPIC_PARTITIONS, Group, LostBroker, calm_group, create_topics, produce
from tests.end_to_end.monitor_process import MonitorProcess, until

pytestmark = pytest.mark.slow

GROWN = OFFSETS_TOPIC_PARTITIONS + 3
REPORTED = f"{OFFSETS_TOPIC} has {GROWN} partitions now, and had {OFFSETS_TOPIC_PARTITIONS} before"


def test_a_group_is_updated_after_it_moved_to_a_new_partition_of_the_offsets_topic(lost_broker: LostBroker, name: str):
    """Brokers use the new partition count after their restart. Until then groups stay in their partition.

    The monitor once compared offsets of the old and the new partition. Then a group got no row until the new partition
    was as long as the old one.
    """
    broker, monitor = lost_broker.broker, lost_broker.monitor
    create_topics(broker, {name: 2})
    # With the new count the group belongs in a partition that did not exist before.
    group = Group(broker.bootstrap_servers, calm_group(name, GROWN, OFFSETS_TOPIC_PARTITIONS))
    group.join([name])
    try:
        monitor.wait_until_ready()
        _has_members(monitor, group, 1)
        skipped = monitor.by_label("rebalance_monitor_records_skipped_total", "reason")
        _grow(broker)
        until("the log line", lambda: monitor.log.read_text().count(REPORTED) == 1, 60)
        until("ready again", lambda: monitor.value("rebalance_monitor_ready") == 1, 120)
        group.join([name])
        _has_members(monitor, group, 2)
        assert _partitions_of(monitor, group) == [_partition(group, OFFSETS_TOPIC_PARTITIONS)]
        broker.kill()
        broker.start()
        until("the group in its new partition", lambda: _partition(group, GROWN) in _partitions_of(monitor, group), 120)
        group.leave()
        _has_members(monitor, group, 1)
        produce(broker, {name: 2}, records=5)
        until("its lag", lambda: monitor.value("rebalance_monitor_group_lag", group=group.group_id) == 0, 60)
        assert monitor.stop() == 0
        monitor.start().wait_until_ready()
        _has_members(monitor, group, 1)
        assert monitor.log.read_text().count(REPORTED) == 1
        assert monitor.by_label("rebalance_monitor_records_skipped_total", "reason") == skipped
    finally:
        group.leave_all()


def _partition(group: Group, partitions: int) -> int:
    return coordinator_partition(group.group_id, partitions)


def _grow(broker: EmbeddedBroker) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)) as admin:
        admin.create_partitions({OFFSETS_TOPIC: GROWN})


def _has_members(monitor: MonitorProcess, group: Group, members: int) -> None:
    known = partial(monitor.value, "rebalance_monitor_group_members", group=group.group_id)
    until(f"{members} members", lambda: known() == members, 60)


def _partitions_of(monitor: MonitorProcess, group: Group) -> Sequence[int]:
    rows = [row for row in monitor.rows("group_generations") if row["group_id"] == group.group_id]
    return sorted({row["offsets_topic_partition"] for row in rows})
