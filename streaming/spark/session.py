"""Start and stop the SparkSession of the monitor.

The package `launch/` contains the JVM and the settings of the session.

1. If the monitor runs without `spark-submit`, it starts Spark with the master and the memory in `settings.spark`.
2. If `spark-submit` started the monitor, Spark is already running, with the settings in `SUBMITTED`, for example master
   and memory. The monitor ignores their values in `settings.spark`. It also does not set `spark.driver.maxResultSize`.
   It sets all other settings. The monitor cannot add its jars. If the jars are not on Spark's class path, every query
   would fail, so the start fails.
3. If the master is `local...`, driver and executors run on one machine. So they use the loopback address. With other
   masters, they do not use it.
4. Each cluster has a separate query and a separate scheduler pool. With several clusters, `local[n]` means n tasks per
   cluster. So a cluster with many unread records does not delay the other clusters.
5. Every user of a machine can read the command lines of processes. So settings of `spark.conf` with possibly secret
   values are not on the command line. The JVM receives them after its start. Spark's web pages and logs do not show
   these values. But settings that have an effect only at the start of the JVM, for example JVM options, are always on
   the command line.
6. Temporary files of Spark, PySpark and native libraries are in a separate folder for each run. If the monitor is
   killed, the next start removes the folder after the JVM has ended. The folders in `SPARK_LOCAL_DIRS` and
   `spark.local.dir` have precedence. The monitor removes nothing in these folders.
7. `spark.conf` in the settings has precedence over the values that the monitor sets. The monitor appends the JVM
   options in `spark.conf` to its JVM options. If an option occurs twice, Java uses the last value. If the options
   select a garbage collector, the monitor sets no options for garbage collection.
8. With a local master, the jars of the monitor come first on the class path of the JVM. With `spark.jars`, Spark would
   copy 24 MB at each start, and would search its own 280 jars first for each class. If executors run on other machines,
   `spark.jars` is necessary.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import py4j.java_gateway
import py4j.protocol
from py4j.java_gateway import JavaGateway, JavaPackage
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.accumulators import AccumulatorServer
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from streaming.config.settings import SparkSettings
from streaming.spark.causes import is_spark_gone, plain_cause
from streaming.spark.launch.conf import is_one_jvm
from streaming.spark.launch.jvm import (
    SETTINGS_REMEDY,
    Jvm,
    SparkLaunch,
    SparkSettingError,
    SparkStartError,
    spark_launch,
)

_REJECTED_SETTING = re.compile(r"\w*(IllegalArgument|NumberFormat)Exception\b")


@contextmanager
def spark_session(settings: SparkSettings) -> Iterator[SparkSession]:
    """Run Spark for one cluster until the `with` block ends. A new session can be started afterwards."""
    with spark_launch(settings) as launch, launched_session(launch, settings.log_level) as session:
        yield session


@contextmanager
def launched_session(launch: SparkLaunch, log_level: str) -> Iterator[SparkSession]:
    """Run Spark in the JVM of a launch until the `with` block ends. Raises the errors of `SparkLaunch.connect`."""
    jvm = launch.connect()
    try:
        session = _start(jvm, log_level)
    except (Py4JError, PySparkException, ConnectionError) as error:
        raise start_error(error, jvm.conf.get("spark.master", "")) from None
    try:
        yield session
    finally:
        _stop(session)


def _start(jvm: Jvm, log_level: str) -> SparkSession:
    # Python workers do not inherit the `sys.path` of this process. So they use the interpreter of this process.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    gateway = _connect(jvm)
    if jvm.process is None and isinstance(gateway.jvm.org.apache.spark.sql.kafka010.KafkaSourceProvider, JavaPackage):
        raise SparkSettingError(
            "the monitor's jars are not on Spark's class path: call `spark-submit` with spark.driver.extraClassPath and"
            " spark.executor.extraClassPath as in deploy/README.md"
        )
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - PySpark has no public method for it
    builder = SparkSession.builder.appName("kafka-rebalance-monitor")
    for name, value in jvm.conf.items():
        builder = builder.config(name, value)
    with ThreadPoolExecutor(1) as thread:  # in the main thread, PySpark replaces the handler of Ctrl-C
        session = thread.submit(builder.getOrCreate).result()
    # The connection closes when the JVM ends. Then PySpark's server would print a long text on standard error.
    AccumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
    session.sparkContext.setLogLevel(log_level)
    return session


def start_error(error: Exception, master: str) -> SparkStartError:
    """Return the error of a session that did not start.

    Call this function while the JVM still runs, because the JVM has the text of a Java error.
    If Spark rejects a setting, every start fails, so the result is a SparkSettingError. But without a local master, an
    unreachable cluster manager can cause the same Java exception, so the result is a SparkStartError.
    """
    if is_spark_gone(error):
        return SparkStartError(
            f"Spark's Java process ended while the session started: read its output above, and {SETTINGS_REMEDY}"
        )
    cause = plain_cause(error)
    is_from_settings = is_one_jvm(master) and _REJECTED_SETTING.match(cause)
    return (SparkSettingError if is_from_settings else SparkStartError)(
        f"Spark did not start ({cause}): {SETTINGS_REMEDY}"
    )


def _connect(jvm: Jvm) -> JavaGateway:
    if jvm.port is None or jvm.secret is None:
        return launch_gateway()  # type: ignore[no-untyped-call]
    os.environ.update(PYSPARK_GATEWAY_PORT=jvm.port, PYSPARK_GATEWAY_SECRET=jvm.secret)
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    finally:  # no child process may get the secret
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
    gateway.proc = jvm.process
    return gateway


def use_pool(session: SparkSession, name: str) -> None:
    """Use a separate scheduler pool for all jobs and queries of this thread (rule 4)."""
    session.sparkContext.setLocalProperty("spark.scheduler.pool", name)


def is_running(session: SparkSession) -> bool:
    """Return True if Spark is running. If the JVM was killed or has no memory left, Spark is not running."""
    process = session.sparkContext._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001 - as below
    try:
        is_over = process is not None and process.poll() is not None
        return not is_over and not session.sparkContext._jsc.sc().isStopped()  # noqa: SLF001 - as below
    except Py4JError:
        return False


def jvm_pid(session: SparkSession) -> int:
    """Return the process id of Spark's JVM. If `spark-submit` started the monitor, the JVM is the parent process."""
    process = session.sparkContext._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001 - PySpark has no public API
    return os.getppid() if process is None else int(process.pid)


def _stop(session: SparkSession) -> None:
    """Stop the session, and release the connection to the JVM. `SparkLaunch.end` ends the JVM later.

    If `spark-submit` started the JVM, the JVM ends when this process ends.
    """
    gateway = session.sparkContext._gateway  # noqa: SLF001 - as above
    process = gateway.proc  # type: ignore[union-attr]
    if process is None:
        session.stop()
        return
    if process.poll() is None:  # a JVM that has ended cannot be called
        session.stop()
        gateway.shutdown()  # type: ignore[union-attr]  # otherwise, py4j keeps sending releases of objects to the JVM
    # PySpark keeps its gateway to the JVM for the next session, and does not check whether that JVM still runs.
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - as above
    # For the whole process, PySpark replaced this function of py4j with a function that calls the ended JVM.
    py4j.java_gateway.get_return_value = py4j.protocol.get_return_value
