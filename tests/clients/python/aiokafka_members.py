"""Runs members of consumer groups with aiokafka."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from commands import JoinOptions, hold_members_in_loop

_STRATEGIES = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


async def consume(given: JoinOptions, leave: asyncio.Event) -> None:
    """Consume until the event `leave` is set."""
    consumer = AIOKafkaConsumer(
        *given["topics"].split(","),
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
    await consumer.start()
    while not leave.is_set():
        await consumer.getmany(timeout_ms=300)
    await consumer.stop()


if __name__ == "__main__":
    asyncio.run(hold_members_in_loop(consume))
