"""The one place that names versions of Spark's, Delta's and Kafka's jars.

`jars.lock` beside this file holds every jar these need, with its hash. After a change here run
`python -m streaming.jars.lock`, which asks the repository and writes it anew. pyspark and delta-spark are Python
packages: their versions stand in pyproject.toml and must fit the ones here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

JarSetName = Literal["spark", "broker", "streams", "tools", "broker-3.7", "broker-3.9", "broker-4.3"]


class Coordinate(NamedTuple):
    """A jar's address: organisation, module and revision."""

    organisation: str
    module: str
    revision: str

    @property
    def file_name(self) -> str:
        """The jar's file name, such as `kafka_2.13-4.2.0.jar`."""
        return f"{self.module}-{self.revision}.jar"

    def __str__(self) -> str:
        """Write it the usual way, such as `org.apache.kafka:kafka_2.13:4.2.0`."""
        return ":".join(self)


KAFKA_VERSION = "4.2.0"
"""The embedded broker's version unless another one is asked for."""

BROKER_SETS: dict[str, JarSetName] = {
    "3.7.2": "broker-3.7",
    "3.9.2": "broker-3.9",
    KAFKA_VERSION: "broker",
    "4.3.1": "broker-4.3",
}
"""The Kafka versions that an embedded broker can be, oldest first, and the jars of each."""


def _broker(kafka_version: str) -> tuple[Coordinate, ...]:
    """Kafka logs through slf4j 1.7, 3.x too; without the binding to log4j it logs nothing at all."""
    return (
        Coordinate("org.apache.kafka", "kafka_2.13", kafka_version),
        Coordinate("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3"),
    )


JAR_SETS: dict[JarSetName, tuple[Coordinate, ...]] = {
    # What Spark needs beside the jars pyspark ships: its Kafka source, and Delta tables.
    "spark": (
        Coordinate("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.0.0"),
        Coordinate("io.delta", "delta-spark_4.0_2.13", "4.4.0"),
    ),
    **{set_name: _broker(kafka_version) for kafka_version, set_name in BROKER_SETS.items()},
    # Kafka Streams for the tests' streams groups (KIP-1071). It runs on the broker's class path.
    "streams": (Coordinate("org.apache.kafka", "kafka-streams", KAFKA_VERSION),),
    # What kafka-consumer-groups.sh and the like start, for the tests of the runbook's commands. Likewise.
    "tools": (Coordinate("org.apache.kafka", "kafka-tools", KAFKA_VERSION),),
}

ALONE: frozenset[JarSetName] = frozenset({"streams", "tools"})
"""Sets that are locked without what they need: the broker's jars hold all of it but RocksDB, whose 70 MB of native code
only applications with state stores load, and Kafka Connect, which only its own tools load."""

FIRST_RUN: tuple[JarSetName, ...] = tuple(
    set_name for set_name in JAR_SETS if set_name not in BROKER_SETS.values() or set_name == BROKER_SETS[KAFKA_VERSION]
)
"""What a set-up brings; the brokers of other versions come when somebody asks for one."""
