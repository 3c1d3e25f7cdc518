"""Runs members of consumer groups with kafka-python."""

from __future__ import annotations

import threading

from commands import JoinOptions, hold_members
from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

_STRATEGIES = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


def consume(given: JoinOptions, leave: threading.Event) -> None:
    """Consume until the event `leave` is set."""
    consumer = KafkaConsumer(
        bootstrap_servers=given["bootstrap_servers"],
        group_id=given["group_id"],
        group_instance_id=given.get("instance_id"),
        client_id=given["client_id"],
        partition_assignment_strategy=[_STRATEGIES[given["strategy"]]],
        session_timeout_ms=int(given["session_timeout_ms"]),
        heartbeat_interval_ms=int(given["heartbeat_interval_ms"]),
        metadata_max_age_ms=int(given["metadata_max_age_ms"]),
        auto_commit_interval_ms=int(given["commit_interval_ms"]),
        auto_offset_reset="earliest",
    )
    consumer.subscribe(given["topics"].split(","))
    while not leave.is_set():
        consumer.poll(timeout_ms=300)
    consumer.close()


if __name__ == "__main__":
    hold_members(consume)
