"""Test jars.lock: it has the hash of every jar, and the same jars always give the same file."""

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
def test_a_written_lock_file_is_read_back(sets: dict[JarSetName, frozenset[LockedJar]]):
    assert parse_lock(format_lock(sets)) == {set_name: tuple(sorted(jars)) for set_name, jars in sets.items()}


@given(jars=_JARS, other=_JARS)
def test_different_jars_have_different_versions(jars: frozenset[LockedJar], other: frozenset[LockedJar]):
    """The version is the name of the folder. With one name, two sets of jars would mix."""
    content = sorted((jar.coordinate, jar.sha256) for jar in jars)
    other_content = sorted((jar.coordinate, jar.sha256) for jar in other)
    assert (lock_version(jars) == lock_version(other)) == (content == other_content)


@pytest.mark.parametrize("line", ["spark abc 1", "spark abc one a:b:1", "spark abc 1 a:b", "flink abc 1 a:b:1"])
def test_a_malformed_line_is_refused(line: str):
    with pytest.raises(ValueError, match=r".+"):
        parse_lock(line)


def test_the_lock_file_fits_the_coordinates():
    """After a change of coordinates.py, `python -m streaming.jars.lock` must be run."""
    locked = parse_lock(LOCK_PATH.read_text())
    for set_name, wanted in JAR_SETS.items():
        assert set(wanted) <= {jar.coordinate for jar in locked[set_name]}
    assert format_lock(locked) == LOCK_PATH.read_text()


def test_spark_gets_no_second_copy_of_a_jar_that_pyspark_ships():
    """Spark's class loader uses Spark's own jars first, so a second version would not be used."""
    shipped = [jar.name for jar in pyspark_jars_folder().glob("*.jar")]
    doubled = [
        jar.coordinate.module
        for jar in parse_lock(LOCK_PATH.read_text())["spark"]
        if any(re.match(re.escape(jar.coordinate.module) + r"-\d", name) for name in shipped)
    ]
    assert shipped
    assert doubled == []


@pytest.mark.parametrize(("kafka_version", "set_name"), BROKER_SETS.items())
def test_the_jars_of_each_broker_version_are_complete_and_include_logging(kafka_version: str, set_name: JarSetName):
    """Without a binding slf4j logs nothing, and a failed start has no reason in the log."""
    coordinates = [jar.coordinate for jar in parse_lock(LOCK_PATH.read_text())[set_name]]
    assert {wanted.module for wanted in coordinates} >= {"log4j-slf4j-impl", "log4j-core", "log4j-api"}
    kafkas = {wanted.module: wanted.revision for wanted in coordinates if wanted.organisation == "org.apache.kafka"}
    assert {"kafka_2.13", "kafka-clients", "kafka-group-coordinator"} <= set(kafkas)
    assert set(kafkas.values()) == {kafka_version}


def test_the_first_run_downloads_only_one_kafka_version():
    """The first run does not need the brokers of the test matrix."""
    assert set(FIRST_RUN) & set(BROKER_SETS.values()) == {BROKER_SETS[KAFKA_VERSION]}
    assert set(FIRST_RUN) | set(BROKER_SETS.values()) == set(JAR_SETS)
