"""jars.lock says every byte that may arrive, and says it the same way every time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.jars.cache import LOCK_PATH
from streaming.jars.coordinates import JAR_SETS, Coordinate
from streaming.jars.ivy import pyspark_jars_folder
from streaming.jars.lockfile import LockedJar, format_lock, lock_version, parse_lock

_WORDS = st.from_regex(r"[a-z0-9._-]{1,12}", fullmatch=True)
_JARS = st.frozensets(
    st.builds(
        LockedJar,
        st.builds(Coordinate, _WORDS, _WORDS, _WORDS),
        st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
        st.integers(0, 10**9),
    ),
    max_size=5,
)


@given(spark=_JARS, broker=_JARS)
def test_what_was_written_is_read_back(spark: frozenset[LockedJar], broker: frozenset[LockedJar]):
    text = format_lock({"spark": spark, "broker": broker})
    assert parse_lock(text) == {"spark": tuple(sorted(spark)), "broker": tuple(sorted(broker))}


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


def test_the_broker_can_log():
    """Without a binding Kafka's slf4j logs nothing, and a broker that doesn't start doesn't say why."""
    modules = {jar.coordinate.module for jar in parse_lock(LOCK_PATH.read_text())["broker"]}
    assert modules >= {"kafka_2.13", "log4j-slf4j-impl", "log4j-core"}
