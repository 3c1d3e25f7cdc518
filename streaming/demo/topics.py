"""Defines the topics of the demo and the rate at which the producer writes to each topic."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass

from kafka import KafkaAdminClient
from kafka.admin import NewTopic


@dataclass(frozen=True)
class DemoTopic:
    """A topic, and the records that the producer writes to it.

    If `keys` is empty, the producer writes to the partitions in round-robin order. If the topic has `keys`, the records
    get the keys in round-robin order, and the key of a record determines its partition.
    """

    name: str
    partitions: int
    records_per_second: float
    keys: tuple[str, ...] = ()


RANGE_TOPICS = tuple(DemoTopic(f"demo-range-{number}", partitions=4, records_per_second=1) for number in range(8))

# Kafka's documentation of RoundRobinAssignor uses these topics as an example. They have 1, 2 and 3 partitions.
UNEQUAL_TOPICS = tuple(DemoTopic(f"demo-t{number}", partitions=number + 1, records_per_second=1) for number in range(3))

ORDERS = DemoTopic("demo-orders", partitions=12, records_per_second=3)
PAYMENTS = DemoTopic("demo-payments", partitions=6, records_per_second=2)
THREE = DemoTopic("demo-three", partitions=3, records_per_second=1)
BUSY = DemoTopic("demo-busy", partitions=2, records_per_second=10)

# Eight of ten records have the same key.
CLICKS = DemoTopic("demo-clicks", partitions=3, records_per_second=10, keys=(*("shop-1",) * 8, "shop-2", "shop-3"))

DEMO_TOPICS: tuple[DemoTopic, ...] = (*RANGE_TOPICS, *UNEQUAL_TOPICS, ORDERS, PAYMENTS, THREE, BUSY, CLICKS)


def create_demo_topics(bootstrap_servers: str, topics: Iterable[DemoTopic] = DEMO_TOPICS) -> None:
    """Create the topics that do not exist yet, with one replica per partition."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    with closing(admin):
        existing = set(admin.list_topics())
        missing = [topic for topic in topics if topic.name not in existing]
        if missing:
            admin.create_topics([NewTopic(topic.name, topic.partitions, replication_factor=1) for topic in missing])
