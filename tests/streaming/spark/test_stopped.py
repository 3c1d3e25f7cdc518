"""Tests that a stopped session leaves nothing in its process."""

from __future__ import annotations

import py4j.java_gateway
import py4j.protocol
import pytest

from streaming.config.settings import SparkSettings
from streaming.spark.session import spark_session
from tests.conftest import SPARK_CONF

pytestmark = pytest.mark.slow


def test_after_a_stop_a_second_session_starts_without_the_jvm_of_the_first():
    """PySpark translates Java's errors for the whole process, and uses the JVM of the first session for it.

    When Python releases a Java object, a thread of py4j notifies this JVM. While the JVM ended, this caused a stack
    trace before the line with the reason of a refused start.
    """
    for _ in range(2):
        with spark_session(SparkSettings.model_validate({"conf": SPARK_CONF})) as session:
            assert session.range(3).count() == 3
            assert py4j.java_gateway.get_return_value is not py4j.protocol.get_return_value
            java_client = session.sparkContext._gateway._gateway_client
            assert java_client.is_connected
        assert not java_client.is_connected, "py4j sends nothing to a stopped JVM"
        assert py4j.java_gateway.get_return_value is py4j.protocol.get_return_value
