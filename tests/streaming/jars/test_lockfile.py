"""jars.lock says every byte that may arrive, and says it the same way every time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.jars.cache import LOCK_PATH
from streaming.jars.coordinates import BROKER_SETS, FIRST_RUN, JAR_SETS, KAFKA_VERSION, Coordinate, JarSetName
from streaming.jars.ivy import pyspark_jars_folder
from streaming.jars.lockfile import LockedJar, format_lock, lock_version, parse_lock

_WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789._-", min_size=1, max_size=12)
_JARS = st.frozensets(
    st.builds(
        LockedJar,
        st.builds(Coordinate, _WORDS, _WORDS, _WORDS),
        st.binary(min_size=32, max_size=32).map(bytes.hex),
        st.integers(0, 10**9),
    ),
    max_size=5,
)


@given(sets=st.fixed_dictionaries(dict.fromkeys(JAR_SETS, _JARS)))
def test_what_was_written_is_read_back(sets: dict[JarSetName, frozenset[LockedJar]]):
    assert parse_lock(format_lock(sets)) == {set_name: tuple(sorted(jars)) for set_name, jars in sets.items()}


@given(jars=_JARS, other=_JARS)
def test_another_content_has_another_version(jars: frozenset[LockedJar], other: frozenset[LockedJar]):
    """The version names the folder: two contents under one name would become a mix of both."""
    said = sorted((jar.coordinate, jar.sha256) for jar in jars)
    said_of_other = sorted((jar.coordinate, jar.sha256) for jar in other)
    assert (lock_version(jars) == lock_version(other)) == (said == said_of_other)


@pytest.mark.parametrize("line", ["spark abc 1", "spark abc one a:b:1", "spark abc 1 a:b", "flink abc 1 a:b:1"])
def test_a_line_of_another_shape_is_refused(line: str):
    with pytest.raises(ValueError, match=r".+"):
        parse_lock(line)


def test_the_lock_is_the_one_made_from_the_coordinates():
    """A version changed in coordinates.py alone would change nothing: `python -m streaming.jars.lock` was forgotten."""
    locked = parse_lock(LOCK_PATH.read_text())
    for set_name, wanted in JAR_SETS.items():
        assert set(wanted) <= {jar.coordinate for jar in locked[set_name]}
    assert format_lock(locked) == LOCK_PATH.read_text()


def test_spark_gets_no_second_copy_of_a_jar_that_pyspark_ships():
    """Its class loader asks Spark's own jars first; a copy of another version would be there and not be used."""
    shipped = [jar.name for jar in pyspark_jars_folder().glob("*.jar")]
    doubled = [
        jar.coordinate.module
        for jar in parse_lock(LOCK_PATH.read_text())["spark"]
        if any(re.match(re.escape(jar.coordinate.module) + r"-\d", name) for name in shipped)
    ]
    assert shipped
    assert doubled == []


@pytest.mark.parametrize(("kafka_version", "set_name"), BROKER_SETS.items())
def test_a_broker_of_each_version_is_whole_and_can_log(kafka_version: str, set_name: JarSetName):
    """Without a binding Kafka's slf4j logs nothing, and a broker that doesn't start doesn't say why."""
    coordinates = [jar.coordinate for jar in parse_lock(LOCK_PATH.read_text())[set_name]]
    assert {wanted.module for wanted in coordinates} >= {"log4j-slf4j-impl", "log4j-core", "log4j-api"}
    kafkas = {wanted.module: wanted.revision for wanted in coordinates if wanted.organisation == "org.apache.kafka"}
    assert {"kafka_2.13", "kafka-clients", "kafka-group-coordinator"} <= set(kafkas)
    assert set(kafkas.values()) == {kafka_version}


def test_a_set_up_brings_one_kafka_only():
    """The first run must not wait for the brokers of the test matrix."""
    assert set(FIRST_RUN) & set(BROKER_SETS.values()) == {BROKER_SETS[KAFKA_VERSION]}
    assert set(FIRST_RUN) | set(BROKER_SETS.values()) == set(JAR_SETS)
