"""Runs a member of a consumer group with Faust: a worker of an application with one agent per topic."""

from __future__ import annotations

import asyncio

import faust
from commands import JoinOptions, hold_members_in_loop
from faust.types import StreamT


async def _count(records: StreamT[bytes]) -> None:
    async for _ in records:
        pass


async def consume(given: JoinOptions, leave: asyncio.Event) -> None:
    """Consume until the event `leave` is set."""
    application = faust.App(
        given["group_id"],
        broker=f"kafka://{given['bootstrap_servers']}",
        broker_client_id=given["client_id"],
        broker_session_timeout=int(given["session_timeout_ms"]) / 1000,
        broker_heartbeat_interval=int(given["heartbeat_interval_ms"]) / 1000,
        broker_commit_interval=int(given["commit_interval_ms"]) / 1000,
        consumer_metadata_max_age_ms=int(given["metadata_max_age_ms"]),
        consumer_auto_offset_reset="earliest",
        topic_disable_leader=True,
        store="memory://",
        web_enabled=False,
    )
    for topic in given["topics"].split(","):
        application.agent(application.topic(topic, value_type=bytes), name=topic)(_count)
    application.finalize()
    await application.start()
    await leave.wait()
    await application.stop()


if __name__ == "__main__":
    asyncio.run(hold_members_in_loop(consume))
