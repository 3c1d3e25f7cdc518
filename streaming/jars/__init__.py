"""Spark's, Delta's and Kafka's jars: coordinates in one place, locked by hash, fetched once a user.

`resolve("spark")` gives the jars for `spark.jars`, `resolve("broker")` the class path of the embedded broker.
"""

from __future__ import annotations

from streaming.jars.cache import OnJar, cache_folder, resolve
from streaming.jars.coordinates import JAR_SETS, Coordinate, JarSetName
from streaming.jars.ivy import JarsError

__all__ = ["JAR_SETS", "Coordinate", "JarSetName", "JarsError", "OnJar", "cache_folder", "resolve"]
