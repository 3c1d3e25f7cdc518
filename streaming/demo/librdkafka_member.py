"""Runs a member of a demo group with librdkafka, which supports KIP-848."""

from __future__ import annotations

import logging
from contextlib import closing

from confluent_kafka import Consumer, KafkaException

from streaming.demo.groups import DemoGroup, DemoMember
from streaming.demo.pace import FETCH_BYTES, FETCH_WAIT_MS, HEARTBEAT_MS, POLL_SECONDS, SESSION_MS, MembershipPeriod

_LOGGER = logging.getLogger(__name__)


def consume(
    bootstrap_servers: str, group: DemoGroup, member: DemoMember, client_id: str, period: MembershipPeriod
) -> None:
    """Join the group. Consume and commit records until the membership period is over. Then leave the group."""
    with closing(Consumer(_configuration(bootstrap_servers, group, member, client_id))) as consumer:
        consumer.subscribe([topic.name for topic in member.topics])
        while not period.is_over():
            messages = consumer.consume(num_messages=100, timeout=POLL_SECONDS)
            records = sum(message.error() is None for message in messages)
            period.simulate_work(records * member.seconds_per_record)
            if records:
                _commit(consumer, group)


def _configuration(
    bootstrap_servers: str, group: DemoGroup, member: DemoMember, client_id: str
) -> dict[str, str | int | bool]:
    configuration: dict[str, str | int | bool] = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": group.group_id,
        "client.id": client_id,
        "enable.auto.commit": group.commits == "auto",
        "auto.offset.reset": "earliest",
        "fetch.min.bytes": FETCH_BYTES,
        "fetch.wait.max.ms": FETCH_WAIT_MS,
    }
    if member.group_instance_id is not None:
        configuration["group.instance.id"] = member.group_instance_id
    if group.group_protocol == "consumer":  # the broker sets the strategy, heartbeat interval and session timeout
        configuration["group.protocol"] = "consumer"
    else:
        configuration["partition.assignment.strategy"] = group.protocol
        configuration["heartbeat.interval.ms"] = HEARTBEAT_MS
        configuration["session.timeout.ms"] = SESSION_MS
    return configuration


def _commit(consumer: Consumer, group: DemoGroup) -> None:
    try:
        if group.commits == "sync":
            consumer.commit(asynchronous=False)
        elif group.commits == "async":
            consumer.commit(asynchronous=True)
    except KafkaException as error:  # a rebalance interrupted the commit: the next commit includes its offsets
        _LOGGER.info("%s: %s", group.group_id, error)
