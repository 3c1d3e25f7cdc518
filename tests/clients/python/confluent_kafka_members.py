"""Runs members of consumer groups with librdkafka."""

from __future__ import annotations

import threading

from commands import JoinOptions, hold_members
from confluent_kafka import Consumer


def _configuration(given: JoinOptions) -> dict[str, str]:
    configuration = {
        "bootstrap.servers": given["bootstrap_servers"],
        "group.id": given["group_id"],
        "client.id": given["client_id"],
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": given["commit_interval_ms"],
        "topic.metadata.refresh.interval.ms": given["metadata_max_age_ms"],
    }
    if "instance_id" in given:
        configuration["group.instance.id"] = given["instance_id"]
    if given["strategy"].startswith("consumer-"):  # KIP-848: the broker assigns and has the timeouts
        remote = given["strategy"].removeprefix("consumer-")
        return {**configuration, "group.protocol": "consumer", "group.remote.assignor": remote}
    return {
        **configuration,
        "session.timeout.ms": given["session_timeout_ms"],
        "heartbeat.interval.ms": given["heartbeat_interval_ms"],
        "partition.assignment.strategy": given["strategy"],
    }


def consume(given: JoinOptions, leave: threading.Event) -> None:
    """Consume until the event `leave` is set."""
    consumer = Consumer(_configuration(given))
    consumer.subscribe(given["topics"].split(","))
    while not leave.is_set():
        consumer.poll(0.3)
    consumer.close()


if __name__ == "__main__":
    hold_members(consume)
