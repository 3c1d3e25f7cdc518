"""Runs a member of a demo group with kafka-python."""

from __future__ import annotations

import logging
from contextlib import closing

from kafka import KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError

from streaming.demo.affinity import AffinityAssignor
from streaming.demo.groups import DemoGroup, DemoMember
from streaming.demo.pace import FETCH_BYTES, FETCH_WAIT_MS, HEARTBEAT_MS, POLL_SECONDS, SESSION_MS, MembershipPeriod

_LOGGER = logging.getLogger(__name__)

_ASSIGNORS = {
    assignor.name: assignor
    for assignor in (RangePartitionAssignor, StickyPartitionAssignor, CooperativeStickyAssignor, AffinityAssignor)
}


def consume(
    bootstrap_servers: str, group: DemoGroup, member: DemoMember, client_id: str, period: MembershipPeriod
) -> None:
    """Join the group. Consume and commit records until the membership period is over. Then leave the group."""
    with closing(_consumer(bootstrap_servers, group, member, client_id)) as consumer:
        if group.protocol:
            consumer.subscribe([topic.name for topic in member.topics])
        else:
            consumer.assign([TopicPartition(topic.name, n) for topic in member.topics for n in range(topic.partitions)])
        while not period.is_over():
            batches = consumer.poll(timeout_ms=int(1000 * POLL_SECONDS))
            records = sum(map(len, batches.values()))
            period.simulate_work(records * member.seconds_per_record)
            if records:
                _commit(consumer, group)


def _consumer(bootstrap_servers: str, group: DemoGroup, member: DemoMember, client_id: str) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        group_id=group.group_id,
        group_instance_id=member.group_instance_id,
        client_id=client_id,
        partition_assignment_strategy=[_ASSIGNORS[group.protocol or "range"]],
        enable_auto_commit=group.commits == "auto",
        auto_commit_interval_ms=FETCH_WAIT_MS,
        auto_offset_reset="earliest",
        fetch_min_bytes=FETCH_BYTES,
        fetch_max_wait_ms=FETCH_WAIT_MS,
        max_poll_records=1 if member.seconds_per_record else 500,
        heartbeat_interval_ms=HEARTBEAT_MS,
        session_timeout_ms=SESSION_MS,
        metrics_enabled=False,
    )


def _commit(consumer: KafkaConsumer, group: DemoGroup) -> None:
    if group.commits == "sync":
        try:
            consumer.commit()
        except KafkaError as error:  # a rebalance interrupted the commit: the next commit includes its offsets
            _LOGGER.info("%s: %s", group.group_id, error)
    elif group.commits == "async":
        consumer.commit_async()
