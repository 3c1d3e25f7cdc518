"""Define the versions of the jars of Spark, Delta and Kafka. Only this file defines the versions.

`jars.lock` in this folder lists the jars and all their dependencies, with hashes. After a change in `coordinates.py`,
run `python -m streaming.jars.lock`. The command sends requests to the Maven repository and rewrites `jars.lock`. The
versions of the Python packages pyspark and delta-spark in pyproject.toml must match the versions in this file.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

JarSetName = Literal["spark", "broker", "streams", "tools", "broker-3.7", "broker-3.9", "broker-4.3"]


class Coordinate(NamedTuple):
    """The Maven coordinate of a jar: organisation, module and revision."""

    organisation: str
    module: str
    revision: str

    @property
    def file_name(self) -> str:
        """The file name of the jar, for example `kafka_2.13-4.2.0.jar`."""
        return f"{self.module}-{self.revision}.jar"

    def __str__(self) -> str:
        """Return the coordinate in the usual format, for example `org.apache.kafka:kafka_2.13:4.2.0`."""
        return ":".join(self)


KAFKA_VERSION = "4.2.0"
"""Default version of the embedded broker."""

BROKER_SETS: dict[str, JarSetName] = {
    "3.7.2": "broker-3.7",
    "3.9.2": "broker-3.9",
    KAFKA_VERSION: "broker",
    "4.3.1": "broker-4.3",
}
"""Maps each supported version of the embedded broker to the name of its jar set. The oldest version comes first."""


def _broker(kafka_version: str) -> tuple[Coordinate, ...]:
    return (
        Coordinate("org.apache.kafka", "kafka_2.13", kafka_version),
        # Kafka 3 and Kafka 4 log through slf4j 1.7. This jar connects slf4j to log4j.
        Coordinate("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3"),
    )


JAR_SETS: dict[JarSetName, tuple[Coordinate, ...]] = {
    # Spark's Kafka source and Delta tables. pyspark does not contain them.
    "spark": (
        Coordinate("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.0.0"),
        Coordinate("io.delta", "delta-spark_4.0_2.13", "4.4.0"),
    ),
    **{set_name: _broker(kafka_version) for kafka_version, set_name in BROKER_SETS.items()},
    # Kafka Streams, for streams groups (KIP-1071) in the tests. It runs on the broker's class path.
    "streams": (Coordinate("org.apache.kafka", "kafka-streams", KAFKA_VERSION),),
    # The tools that kafka-consumer-groups.sh and similar scripts start, for the tests of the runbook's commands. These
    # tools also run on the broker's class path.
    "tools": (Coordinate("org.apache.kafka", "kafka-tools", KAFKA_VERSION),),
}

WITHOUT_DEPENDENCIES: frozenset[JarSetName] = frozenset({"streams", "tools"})
"""Sets whose dependencies are not in `jars.lock`, because the broker's jars contain almost all of them.

No set contains RocksDB (70 MB), because only applications with state stores load it. No set contains Kafka Connect,
because only its own tools load it.
"""

FIRST_RUN: tuple[JarSetName, ...] = tuple(
    set_name for set_name in JAR_SETS if set_name not in BROKER_SETS.values() or set_name == BROKER_SETS[KAFKA_VERSION]
)
"""The sets that the setup downloads. The jars of other broker versions are downloaded at their first use."""
