"""What a session leaves behind in its process when it is stopped: nothing."""

from __future__ import annotations

import gc
import logging
import time

import py4j.java_gateway
import py4j.protocol
import pytest

from streaming.config.settings import SparkSettings
from streaming.jars import resolve
from streaming.java import find_java
from streaming.spark.session import spark_session, stop_spark

SEEN_TO_SECONDS = 2.0
"""Objects that nobody needs are told of by a thread that looks for some once a second."""

pytestmark = pytest.mark.slow


def test_after_a_stop_another_session_starts_and_the_first_ones_jvm_is_never_asked_again(
    caplog: pytest.LogCaptureFixture,
):
    """PySpark translates Java's errors for all of a process, with the help of a JVM that is gone by then.

    And whenever Python is done with an object of Java's, py4j tells that JVM: at the end of a start that was refused
    this put a stack trace before the one line that says why.
    """
    for _ in range(2):
        session = spark_session(SparkSettings(), resolve("spark"), find_java().parent.parent)
        rows = session.range(3)
        assert rows.count() == 3
        assert py4j.java_gateway.get_return_value is not py4j.protocol.get_return_value
        stop_spark(session)
        assert py4j.java_gateway.get_return_value is py4j.protocol.get_return_value
        del session, rows
        gc.collect()
        time.sleep(SEEN_TO_SECONDS)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
