"""Start, configure and stop the SparkSession of the monitor.

1. If the monitor runs alone, it starts Spark. In this case, `settings.spark` defines the master and the memory.
2. If `spark-submit` started the monitor, Spark is already running. In this case, spark-submit has already set the
   master, the memory, the jars, the addresses and the JVM options (`SUBMITTED`). The monitor ignores these settings in
   `settings.spark`. The monitor uses all other settings.
3. If the master is `local...`, driver and executors run on one machine and use the loopback address. With other
   masters, they do not use the loopback address.
4. Each cluster has its own query. With several clusters, `local[n]` means n tasks per cluster, and each query has its
   own scheduler pool. So a cluster that is catching up does not delay the other clusters. A cluster whose broker does
   not answer also does not delay the other clusters.
5. Every user of a machine can read the command lines of processes. So a value of `spark.conf` that could be a secret is
   not put on a command line. The JVM receives such a value after the JVM has started. Spark's web pages and logs do not
   show these values. JVM options are an exception. They are always on the command line.
6. Temporary files of Spark, PySpark and native libraries are in a separate folder for each run. If the monitor is
   killed, the next start removes the folder after the JVM has ended. `SPARK_LOCAL_DIRS` and `spark.local.dir` have
   precedence over this folder. The monitor removes nothing in the folders of these two settings.
7. `spark.conf` in the settings has precedence over the values that the monitor sets. The monitor appends the JVM
   options in `spark.conf` to its own JVM options. If an option occurs twice, Java uses the last value. To use a
   different garbage collector, also add the option `-XX:-UseParallelGC`. It switches off the garbage collector that the
   monitor sets.
8. With a local master, the jars of the monitor come first on the class path of the JVM. With `spark.jars`, Spark copies
   24 MB at each start. To load a class, Spark then searches its own 280 jars first. If executors run on other machines,
   `spark.jars` is necessary.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from socketserver import BaseServer
from typing import Any

import py4j.java_gateway
import py4j.protocol
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.accumulators import AccumulatorServer
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from streaming.config.redaction import is_harmless, without_credentials
from streaming.config.settings import SparkSettings
from streaming.private_folder import PrivateFolder, private_folder

_FOLDER_PREFIX = "kafka-rebalance-monitor-spark-"
_JVM_EXIT_SECONDS = 5.0
_LOGGING = Path(__file__).with_name("log4j2.properties")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_CLASS_PATH = "spark.driver.extraClassPath"
_REDACTION = "spark.redaction.regex"
_REDACTED_BY_SPARK = "(?i)secret|password|token|access[.]?key"
_LAUNCH_ONLY = re.compile(r"spark\.(driver\.(extra|default)|jars|files|archives|submit|plugins|master|redaction|log)")
"""A pattern for the names of settings that have an effect only at the start of the JVM."""
ROCKSDB_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

SUBMITTED = frozenset(
    {
        "spark.master",
        "spark.jars",
        _CLASS_PATH,
        "spark.driver.memory",
        _JAVA_OPTIONS,
        "spark.driver.host",
        "spark.driver.bindAddress",
    }
)
"""Settings that cannot change while the driver runs, or that spark-submit has set (rule 2)."""


@contextmanager
def spark_session(
    settings: SparkSettings, jars: Sequence[Path], java_home: Path, clusters: int = 1
) -> Iterator[SparkSession]:
    """Run Spark for this number of clusters until the `with` block ends. A new session can be started afterwards."""
    with private_folder(_FOLDER_PREFIX) as folder:
        session = _start(settings, jars, java_home, clusters, folder)
        try:
            yield session
        finally:
            _stop(session)


def _start(
    settings: SparkSettings, jars: Sequence[Path], java_home: Path, clusters: int, folder: PrivateFolder
) -> SparkSession:
    """Start Spark.

    Python workers do not inherit the `sys.path` of this process. So the workers must use the same Python interpreter as
    this process.
    """
    os.environ["JAVA_HOME"] = str(java_home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("kafka-rebalance-monitor")
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    conf = session_conf(settings, jars, folder.path, submitted=submitted, clusters=clusters)
    on_command_line = SparkConf(loadDefaults=False).setAll(list(launch_conf(conf, settings.conf).items()))
    # The session itself would launch the JVM with all options on its command line, and without the folder's lock.
    launched_with = {"pass_fds": [folder.lock]}
    gateway = SparkContext._gateway or launch_gateway(on_command_line, launched_with)  # type: ignore[no-untyped-call]  # noqa: SLF001 - as below
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - PySpark has no public method for it
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    AccumulatorServer.handle_error = _ignore_error  # type: ignore[method-assign,assignment]
    session.sparkContext.setLogLevel(settings.log_level)
    return session


def session_conf(
    settings: SparkSettings, jars: Sequence[Path], folder: Path, *, submitted: bool, clusters: int = 1
) -> Mapping[str, str]:
    """Return all settings of the session, as rules 1 to 7 require. Spark's temporary files go into `folder`.

    Example: `session_conf(SparkSettings(), [], Path("/tmp"), submitted=True)` has no `spark.master`.
    """
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    is_here = settings.master.startswith("local")
    master = re.sub(r"^local\[(\d+)\]$", lambda slots: f"local[{int(slots[1]) * clusters}]", settings.master)
    own = _conf(settings, jars, folder)
    user_conf = {name: value.get_secret_value() for name, value in settings.conf.items()}
    conf = {"spark.master": master, **(loopback if is_here else {}), **own, **user_conf, **_redaction(user_conf)}
    for name, separator in ((_JAVA_OPTIONS, " "), (_CLASS_PATH, os.pathsep)):
        if name in own and name in user_conf:
            conf[name] = f"{own[name]}{separator}{user_conf[name]}"
    return {name: value for name, value in conf.items() if not (submitted and name in SUBMITTED)}


def _ignore_error(server: BaseServer, request: object, client_address: Any) -> None:  # noqa: ANN401 - signature of the base class
    """When the JVM ends, its connection closes with an error. Ignore this error.

    Otherwise, PySpark's server prints a long text on standard error.
    """


def launch_conf(conf: Mapping[str, str], user_conf: Collection[str]) -> Mapping[str, str]:
    """Return the settings for the command line of the JVM (rule 5).

    `user_conf` contains the names of the settings in `spark.conf`.

    >>> launch_conf({"spark.sql.session.timeZone": "UTC", "spark.hadoop.fs.s3a.key": "x"}, ["spark.hadoop.fs.s3a.key"])
    {'spark.sql.session.timeZone': 'UTC'}
    """
    return {
        name: value
        for name, value in conf.items()
        if name not in user_conf
        or _LAUNCH_ONLY.match(name)
        or (is_harmless(name) and value == without_credentials(value))
    }


def _redaction(user_conf: Mapping[str, str]) -> Mapping[str, str]:
    """Return the pattern of settings whose values Spark hides on its web pages and in its logs.

    The pattern matches either the name or the value of a setting.
    """
    user_pattern = user_conf.get(_REDACTION, _REDACTED_BY_SPARK)
    hidden = (name.removeprefix("spark.hadoop.") for name in sorted(user_conf) if not is_harmless(name))
    return {_REDACTION: "|".join([user_pattern, *map(re.escape, hidden), "://[^/\\s]*:.*@"])}


def use_pool(session: SparkSession, name: str) -> None:
    """Use a separate scheduler pool for this thread (rule 4).

    All jobs of this thread use the pool. The queries that this thread starts also use the pool.
    """
    session.sparkContext.setLocalProperty("spark.scheduler.pool", name)


def is_running(session: SparkSession) -> bool:
    """Return True if Spark is running. If the JVM was killed or has no memory left, all queries have ended."""
    process = session.sparkContext._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001 - as below
    try:
        is_over = process is not None and process.poll() is not None
        return not is_over and not session.sparkContext._jsc.sc().isStopped()  # noqa: SLF001 - as below
    except Py4JError:
        return False


def jvm_pid(session: SparkSession) -> int:
    """Return the process id of Spark's JVM.

    Either this monitor started the JVM, or the JVM is the parent process (`spark-submit`).
    """
    process = session.sparkContext._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001 - PySpark has no public API
    return os.getppid() if process is None else int(process.pid)


def _stop(session: SparkSession) -> None:
    """Stop the session and its JVM, and wait until the JVM has ended. `session.stop()` alone does not stop the JVM.

    If `spark-submit` started the JVM, the JVM ends when this process ends.
    """
    gateway = session.sparkContext._gateway  # noqa: SLF001 - as above
    process = gateway.proc  # type: ignore[union-attr]
    if process is None:
        session.stop()
        return
    if process.poll() is None:  # a JVM that has ended cannot be called
        session.stop()
        gateway.shutdown()  # type: ignore[union-attr]  # otherwise py4j keeps sending it the objects to release
    process.stdin.close()  # the JVM exits when its standard input is closed
    try:
        process.wait(_JVM_EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    # PySpark keeps its gateway to the JVM for the next session, and does not check whether that JVM still runs.
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - as above
    # PySpark replaced this function of py4j for the whole process by one that calls the ended JVM.
    py4j.java_gateway.get_return_value = py4j.protocol.get_return_value


def _jar_conf(master: str, jars: Sequence[str]) -> Mapping[str, str]:
    """Return the setting that names the jars (rule 8).

    With the master `local-cluster`, executors are separate processes, so `spark.jars` is necessary.
    """
    is_one_jvm = re.match(r"local(\[|$)", master)
    return {_CLASS_PATH: os.pathsep.join(jars)} if is_one_jvm else {"spark.jars": ",".join(jars)}


def _conf(settings: SparkSettings, jars: Sequence[Path], folder: Path) -> Mapping[str, str]:
    level = settings.log_level
    return {
        **_jar_conf(settings.master, [str(jar) for jar in jars]),
        "spark.driver.memory": settings.driver_memory,
        # Workers start with pandas, Arrow and the steps imported. This saves 2 CPU seconds in the first batch.
        "spark.python.daemon.module": "streaming.spark.daemon",
        # Throughput is more important than latency: G1 needs 37 CPU seconds for 2 million records, this collector 35.
        _JAVA_OPTIONS: (
            f"-XX:+UseParallelGC -Dlog4j2.configurationFile={_LOGGING} -Drebalance.monitor.log.level={level}"
            f' "-Djava.io.tmpdir={folder}"'  # Spark's default folder for temporary files
        ),
        "spark.scheduler.mode": "FAIR",
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.enabled": "false",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # The monitor does not use Spark's catalog, but Spark creates its folder. Keep it out of the working directory.
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        # The newer offset fetching of Spark's Kafka source ignores internal topics: no rows from __consumer_offsets.
        "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB_PROVIDER,
        # This almost halves the minimum time of a stateful batch: 0.5 s instead of 0.9 s.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # A checkpoint cannot change it, so the monitor sets it and does not use Spark's default of 200.
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        "spark.sql.adaptive.enabled": "false",
        # Arrow batches of this size need the least time in the combine step. After this step, rows are few and small.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
        # With any other value, Spark computes the size of the Arrow batch after each row (streaming/DESIGN.md).
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.metricsEnabled": "false",
        # A source that waits for a dead broker cannot be interrupted. Without this timeout a stop took 44 s.
        "spark.sql.streaming.stopTimeout": "5s",
        # Delta's log is read once, when a checkpoint is created. One partition instead of 50 is enough for few files.
        "spark.databricks.delta.snapshotPartitions": "1",
    }
