"""Provide the jars of Spark, Delta and Kafka. `jars.lock` contains the hash of each jar.

Each jar is downloaded once per user. For a machine without internet access, `copy_set` copies the jars into a folder.
On that machine, `resolve(..., source=folder)` copies the jars from this folder.

`resolve("spark")` returns the jars for the setting `spark.jars`. `resolve("broker")` returns the class path of the
embedded broker. `resolve(BROKER_SETS["3.9.2"])` returns the class path of a broker of version 3.9.2.
"""

from __future__ import annotations

from streaming.jars.cache import OnJar, cache_folder, copy_set, missing_jars, resolve
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
    "copy_set",
    "missing_jars",
    "resolve",
]
