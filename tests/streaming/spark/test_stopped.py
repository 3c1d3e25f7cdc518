"""What a session leaves behind in its process when it is stopped: nothing."""

from __future__ import annotations

import py4j.java_gateway
import py4j.protocol
import pytest

from streaming.config.settings import SparkSettings
from streaming.jars import resolve
from streaming.java import find_java
from streaming.spark.session import spark_session

pytestmark = pytest.mark.slow


def test_after_a_stop_another_session_starts_and_nobody_turns_to_the_first_ones_jvm():
    """PySpark translates Java's errors for all of a process, with the help of a JVM that is gone by then.

    And whenever Python is done with an object of Java's, a thread of py4j's tells that JVM. While it was ending, a
    stack trace came of that, before the one line that said why a start was refused.
    """
    for _ in range(2):
        with spark_session(SparkSettings(), resolve("spark"), find_java().parent.parent) as session:
            assert session.range(3).count() == 3
            assert py4j.java_gateway.get_return_value is not py4j.protocol.get_return_value
            way_to_java = session.sparkContext._gateway._gateway_client
            assert way_to_java.is_connected
        assert not way_to_java.is_connected, "nothing is sent any more, whatever there is to tell"
        assert py4j.java_gateway.get_return_value is py4j.protocol.get_return_value
