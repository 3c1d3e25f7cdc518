"""`__consumer_offsets` with more partitions than before: groups move to different partitions, and none is frozen."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from assignors.coordinator import coordinator_partition
from streaming.embedded import EmbeddedBroker
from streaming.events import OFFSETS_TOPIC
from tests.end_to_end.conftest import OFFSETS_TOPIC_PARTITIONS, QUICK_BROKER, Group, create_topics, produce
from tests.end_to_end.monitor_process import MonitorProcess, until

pytestmark = pytest.mark.slow

GROWN = OFFSETS_TOPIC_PARTITIONS + 3
REPORTED = f"{OFFSETS_TOPIC} has {GROWN} partitions, and had {OFFSETS_TOPIC_PARTITIONS}"


def test_groups_are_followed_to_the_partitions_they_have_among_more(tmp_path: Path, name: str):
    """Brokers use the new count after their restart: until then groups go on where they are, and then begin anew.

    A group whose offsets were compared over two partitions got no row until the new one was as long as the old one.
    """
    with EmbeddedBroker(tmp_path / "broker", properties=QUICK_BROKER) as broker:
        create_topics(broker, {name: 2})
        group = Group(broker.bootstrap_servers, _moving_group(name))
        group.join([name])
        monitor = MonitorProcess(broker.bootstrap_servers, tmp_path / "monitor").start().wait_until_ready()
        try:
            _has_members(monitor, group, 1)
            _grow(broker)
            until("the line", lambda: monitor.log.read_text().count(REPORTED) == 1, 60)
            until("ready again", lambda: monitor.value("rebalance_monitor_ready") == 1, 120)
            group.join([name])
            _has_members(monitor, group, 2)
            assert _partitions_of(monitor, group) == [_partition(group, OFFSETS_TOPIC_PARTITIONS)]
            broker.kill()
            broker.start()
            until("it moves", lambda: _partition(group, GROWN) in _partitions_of(monitor, group), 120)
            group.leave()
            _has_members(monitor, group, 1)
            produce(broker, {name: 2}, records=5)
            until("its lag", lambda: monitor.value("rebalance_monitor_group_lag", group=group.group_id) == 0, 60)
            assert monitor.stop() == 0
            monitor.start().wait_until_ready()
            _has_members(monitor, group, 1)
            assert monitor.log.read_text().count(REPORTED) == 1
            assert monitor.by_label("rebalance_monitor_records_skipped_total", "reason") == {}
        finally:
            group.leave_all()
            monitor.stop()


def _moving_group(name: str) -> str:
    """A group whose partition among more did not exist before."""
    candidates = (f"{name}-{number}" for number in range(100))
    return next(one for one in candidates if coordinator_partition(one, GROWN) >= OFFSETS_TOPIC_PARTITIONS)


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
    return sorted({row["kafka_partition"] for row in rows})
