"""Provide the jars of Spark, Delta and Kafka. `jars.lock` contains the hash of each jar.

Each jar is downloaded once for each user account. For a machine without internet access, `copy_set` copies the jars
into a folder. The package may import only `config`.
"""

from __future__ import annotations

from streaming.jars.cache import cache_folder, copy_set, missing_jars, resolve
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
    "cache_folder",
    "copy_set",
    "missing_jars",
    "resolve",
]
