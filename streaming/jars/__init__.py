"""Spark's, Delta's and Kafka's jars: coordinates in one place, locked by hash, fetched once a user.

`resolve("spark")` gives the jars for `spark.jars`, `resolve("broker")` the class path of the embedded broker, and
`resolve(BROKER_SETS["3.9.2"])` that of a broker of another version.
"""

from __future__ import annotations

from streaming.jars.cache import OnJar, cache_folder, resolve
from streaming.jars.coordinates import BROKER_SETS, FIRST_RUN, JAR_SETS, KAFKA_VERSION, Coordinate, JarSetName
from streaming.jars.ivy import JarsError

__all__ = [
    "BROKER_SETS",
    "FIRST_RUN",
    "JAR_SETS",
    "KAFKA_VERSION",
    "Coordinate",
    "JarSetName",
    "JarsError",
    "OnJar",
    "cache_folder",
    "resolve",
]
