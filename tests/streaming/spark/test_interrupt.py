"""Test that the start of Spark leaves Ctrl-C to the monitor. No JVM is started."""

from __future__ import annotations

import signal
import threading
from unittest.mock import Mock

import pytest
from pyspark import SparkContext
from pyspark.accumulators import AccumulatorServer
from pyspark.sql import SparkSession

from streaming.spark import session as session_module
from streaming.spark.launch.jvm import Jvm


def test_the_start_of_spark_does_not_replace_the_handler_of_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the main thread, PySpark replaced the handler. Then Ctrl-C made the query fail, and the monitor continued."""

    def create_as_pyspark(_: SparkSession.Builder) -> Mock:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return Mock()

    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(AccumulatorServer, "handle_error", AccumulatorServer.handle_error)
    monkeypatch.setattr(SparkContext, "_ensure_initialized", Mock())
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", create_as_pyspark)
    monkeypatch.setattr(session_module, "_connect", Mock())
    own_handler = Mock()
    before = signal.signal(signal.SIGINT, own_handler)
    try:
        session_module._start(Jvm({}), "INFO")
        assert signal.getsignal(signal.SIGINT) is own_handler
    finally:
        signal.signal(signal.SIGINT, before)
