"""What a session leaves behind in its process when it is stopped: nothing."""

from __future__ import annotations

import py4j.java_gateway
import py4j.protocol
import pytest

from streaming.config.settings import SparkSettings
from streaming.jars import resolve
from streaming.java import find_java
from streaming.spark.session import spark_session, stop_spark

pytestmark = pytest.mark.slow


def test_after_a_stop_another_session_starts_and_javas_errors_reach_others_untranslated():
    """PySpark translates Java's errors for all of a process, with the help of a JVM that is gone by then."""
    for _ in range(2):
        session = spark_session(SparkSettings(), resolve("spark"), find_java().parent.parent)
        assert session.range(3).count() == 3
        assert py4j.java_gateway.get_return_value is not py4j.protocol.get_return_value
        stop_spark(session)
        assert py4j.java_gateway.get_return_value is py4j.protocol.get_return_value
