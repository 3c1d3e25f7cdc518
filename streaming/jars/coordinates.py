"""The one place that names versions of Spark's, Delta's and Kafka's jars.

`jars.lock` beside this file holds every jar these need, with its hash. After a change here run
`python -m streaming.jars.lock`, which asks the repository and writes it anew. pyspark and delta-spark are Python
packages: their versions stand in pyproject.toml and must fit the ones here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

JarSetName = Literal["spark", "broker"]


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


JAR_SETS: dict[JarSetName, tuple[Coordinate, ...]] = {
    # What Spark needs beside the jars pyspark ships: its Kafka source, and Delta tables.
    "spark": (
        Coordinate("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.0.0"),
        Coordinate("io.delta", "delta-spark_4.0_2.13", "4.4.0"),
    ),
    # The embedded broker. Kafka logs through slf4j 1.7; without the binding to log4j it logs nothing at all.
    "broker": (
        Coordinate("org.apache.kafka", "kafka_2.13", "4.2.0"),
        Coordinate("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3"),
    ),
}
