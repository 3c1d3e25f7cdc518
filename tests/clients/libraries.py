"""The client libraries and their strategies, for `make test-clients` and for the captured records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Language = Literal["go", "node", "java", "python"]

EVERY_EAGER = ("range", "roundrobin", "sticky")
EVERY_CLASSIC = (*EVERY_EAGER, "cooperative-sticky")
CONSUMER_PROTOCOL = ("consumer-range", "consumer-uniform")
"""KIP-848 with one of the assignors of the broker."""


@dataclass(frozen=True)
class Library:
    """A version of a client library. A Go module must have the same version in `go/go.mod`.

    Attributes:
        package: the name in the package registry of its language.
        supports_static: True if a member can have a `group.instance.id` (KIP-345).
        one_per_process: True if a process can run only one member.
        ignores_subscriptions: True if its leader assigns every topic to every member. The monitor must report drift.
        only_same_topics: strategies whose leader crashes if members subscribe to different topics.
        different_static_order: strategies that order static and dynamic members differently from Java since 2.4.

    """

    name: str
    version: str
    language: Language
    package: str
    strategies: tuple[str, ...]
    supports_static: bool = True
    one_per_process: bool = False
    ignores_subscriptions: bool = False
    only_same_topics: tuple[str, ...] = ()
    different_static_order: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return name and version, for example `sarama 1.61.1`."""
        return f"{self.name} {self.version}"


LIBRARIES = (
    Library("sarama", "1.61.1", "go", "github.com/IBM/sarama", EVERY_CLASSIC),
    Library("franz-go", "1.22.2", "go", "github.com/twmb/franz-go", EVERY_CLASSIC),
    Library(
        "kafka-go",
        "0.4.51",
        "go",
        "github.com/segmentio/kafka-go",
        ("range", "roundrobin", "rack-affinity"),
        supports_static=False,
    ),
    Library(
        "kafkajs",
        "2.2.4",
        "node",
        "kafkajs",
        ("roundrobin",),
        supports_static=False,
        ignores_subscriptions=True,
    ),
    Library("aiokafka", "0.14.0", "python", "aiokafka", EVERY_EAGER),
    Library(
        "faust",
        "0.15.3",
        "python",
        "faust-streaming",
        ("faust",),
        supports_static=False,
        one_per_process=True,
    ),
    Library(
        "kafka-python",
        "3.0.12",
        "python",
        "kafka-python",
        EVERY_CLASSIC,
        only_same_topics=("roundrobin",),
        different_static_order=("range", "roundrobin"),  # some static members get no partitions
    ),
    # confluent-kafka has the same version as the librdkafka in its wheel.
    Library("librdkafka", "2.0.2", "python", "confluent-kafka", ("range", "roundrobin", "cooperative-sticky")),
    Library(
        "librdkafka",
        "2.16.1",
        "python",
        "confluent-kafka",
        ("range", "roundrobin", "cooperative-sticky", *CONSUMER_PROTOCOL),
    ),
    Library("java", "2.3.1", "java", "kafka-clients", EVERY_EAGER, different_static_order=("range",)),
    Library("java", "2.8.2", "java", "kafka-clients", EVERY_CLASSIC),
    Library("java", "3.4.1", "java", "kafka-clients", EVERY_CLASSIC),
    Library("java", "4.2.0", "java", "kafka-clients", (*EVERY_CLASSIC, *CONSUMER_PROTOCOL)),
)
