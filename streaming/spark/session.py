"""The SparkSession the monitor runs in.

1. Started by itself, the monitor starts Spark: settings.spark says which master and how much memory.
2. Started by `spark-submit`, Spark runs already: master, memory, jars, addresses and the JVM's options are what
   spark-submit was told (`SUBMITTED`), and what settings.spark says of these is passed over. All else is set as always.
3. Driver and executors talk over loopback only where they are on one machine: with a master called local.
4. Several clusters have a query each. `local[n]` is then n tasks at a time for each of them, and jobs take turns (a
   pool each): a cluster that catches up, or whose broker leaves its tasks waiting, takes no other one's place.
5. A value of `spark.conf` that may be a secret is on no command line, which every user of the machine may read: the JVM
   hears it when it runs. Spark's pages and logs show none of them. Options of the JVM itself are an exception.
6. Spark's files (its own, PySpark's, native libraries) lie in a folder of this run. If we are killed, the next start
   removes it once the JVM is gone, too. `SPARK_LOCAL_DIRS` and `spark.local.dir` win; nothing is removed there.
7. `spark.conf` of the settings wins over ours. The JVM's options come behind ours, so that one option more does not
   cost the log its settings. Of one option said twice Java takes the last; another collector needs ours switched off.
8. With a local master our jars are on the JVM's class path, first. As `spark.jars`, Spark copies 24 MB of them at each
   start and looks for each of their classes in its own 280 jars first. Executors on other machines need `spark.jars`.
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
_OF_LAUNCH = re.compile(r"spark\.(driver\.(extra|default)|jars|files|archives|submit|plugins|master|redaction|log)")
"""Names that only the launch can use."""
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
"""What a driver that runs already can't be told any more, or was told better."""


@contextmanager
def spark_session(
    settings: SparkSettings, jars: Sequence[Path], java_home: Path, clusters: int = 1
) -> Iterator[SparkSession]:
    """Run Spark for so many clusters while the block runs. Another session may be started afterwards."""
    with private_folder(_FOLDER_PREFIX) as folder:
        session = _start(settings, jars, java_home, clusters, folder)
        try:
            yield session
        finally:
            _stop(session)


def _start(
    settings: SparkSettings, jars: Sequence[Path], java_home: Path, clusters: int, folder: PrivateFolder
) -> SparkSession:
    """Workers run this very interpreter: the driver's `sys.path` is not theirs."""
    os.environ["JAVA_HOME"] = str(java_home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("kafka-rebalance-monitor")
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    conf = session_conf(settings, jars, folder.path, submitted=submitted, clusters=clusters)
    on_command_line = SparkConf(loadDefaults=False).setAll(list(launch_conf(conf, settings.conf).items()))
    # The session would launch it with all of the options, and without the folder's lock.
    launched_with = {"pass_fds": [folder.lock]}
    gateway = SparkContext._gateway or launch_gateway(on_command_line, launched_with)  # type: ignore[no-untyped-call]  # noqa: SLF001 - as below
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - PySpark has no public way to it
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    AccumulatorServer.handle_error = _pass_over  # type: ignore[method-assign,assignment]
    session.sparkContext.setLogLevel(settings.log_level)
    return session


def session_conf(
    settings: SparkSettings, jars: Sequence[Path], folder: Path, *, submitted: bool, clusters: int = 1
) -> Mapping[str, str]:
    """Return all that the session is told, by rules 1 to 7. Spark's own files go into the folder.

    Example: `session_conf(SparkSettings(), [], Path("/tmp"), submitted=True)` says nothing of `spark.master`.
    """
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    is_here = settings.master.startswith("local")
    master = re.sub(r"^local\[(\d+)\]$", lambda slots: f"local[{int(slots[1]) * clusters}]", settings.master)
    own = _conf(settings, jars, folder)
    given = {name: value.get_secret_value() for name, value in settings.conf.items()}
    reported = {"spark.master": master, **(loopback if is_here else {}), **own, **given, **_redaction(given)}
    for name, separator in ((_JAVA_OPTIONS, " "), (_CLASS_PATH, os.pathsep)):
        if name in own and name in given:
            reported[name] = f"{own[name]}{separator}{given[name]}"
    return {name: value for name, value in reported.items() if not (submitted and name in SUBMITTED)}


def _pass_over(server: BaseServer, request: object, client_address: Any) -> None:  # noqa: ANN401 - as the base has it
    """A JVM that ends hangs up on PySpark's own server, which would print a page about it on standard error."""


def launch_conf(conf: Mapping[str, str], given: Collection[str]) -> Mapping[str, str]:
    """The part of it that the JVM is launched with (rule 5); `given` are the names that `spark.conf` has.

    >>> launch_conf({"spark.sql.session.timeZone": "UTC", "spark.hadoop.fs.s3a.key": "x"}, ["spark.hadoop.fs.s3a.key"])
    {'spark.sql.session.timeZone': 'UTC'}
    """
    return {
        name: value
        for name, value in conf.items()
        if name not in given or _OF_LAUNCH.match(name) or (is_harmless(name) and value == without_credentials(value))
    }


def _redaction(given: Mapping[str, str]) -> Mapping[str, str]:
    """What Spark is to hide on its pages and in its logs: by a name, or by what a value looks like."""
    theirs = given.get(_REDACTION, _REDACTED_BY_SPARK)
    hidden = (name.removeprefix("spark.hadoop.") for name in sorted(given) if not is_harmless(name))
    return {_REDACTION: "|".join([theirs, *map(re.escape, hidden), "://[^/\\s]*:.*@"])}


def use_pool(session: SparkSession, name: str) -> None:
    """Have the jobs of this thread, and of queries started in it, take turns with those of other pools (rule 4)."""
    session.sparkContext.setLocalProperty("spark.scheduler.pool", name)


def is_running(session: SparkSession) -> bool:
    """Whether Spark still can do anything: a JVM without memory, or killed, takes every query with it."""
    process = session.sparkContext._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001 - as below
    try:
        is_over = process is not None and process.poll() is not None
        return not is_over and not session.sparkContext._jsc.sc().isStopped()  # noqa: SLF001 - as below
    except Py4JError:
        return False


def jvm_pid(session: SparkSession) -> int:
    """The process of Spark's JVM: the one we started, or else `spark-submit`, which started us."""
    process = session.sparkContext._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001 - PySpark has no public way to it
    return os.getppid() if process is None else int(process.pid)


def _stop(session: SparkSession) -> None:
    """Stop the session and its JVM, and return when that is gone: `session.stop()` alone leaves it running.

    The JVM that `spark-submit` started ends with this process.
    """
    gateway = session.sparkContext._gateway  # noqa: SLF001 - as above
    process = gateway.proc  # type: ignore[union-attr]
    if process is None:
        session.stop()
        return
    if process.poll() is None:  # of a JVM that is gone already nothing can be asked
        session.stop()
        gateway.shutdown()  # type: ignore[union-attr]  # or py4j goes on telling it which objects nobody needs
    process.stdin.close()  # at which it exits
    try:
        process.wait(_JVM_EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    # PySpark keeps the way to the JVM for its next session, and never asks whether it still leads anywhere.
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - as above
    # Its translator of Java's errors asks that JVM, on behalf of every user of py4j in this process.
    py4j.java_gateway.get_return_value = py4j.protocol.get_return_value


def _where_jars_are(master: str, jars: Sequence[str]) -> Mapping[str, str]:
    """Rule 8. Executors of `local-cluster` are processes of their own."""
    is_one_jvm = re.match(r"local(\[|$)", master)
    return {_CLASS_PATH: os.pathsep.join(jars)} if is_one_jvm else {"spark.jars": ",".join(jars)}


def _conf(settings: SparkSettings, jars: Sequence[Path], folder: Path) -> Mapping[str, str]:
    level = settings.log_level
    return {
        **_where_jars_are(settings.master, [str(jar) for jar in jars]),
        "spark.driver.memory": settings.driver_memory,
        # Workers find pandas, Arrow and our steps imported: 2 CPU seconds less in a cold start's first batch.
        "spark.python.daemon.module": "streaming.spark.daemon",
        # A batch is throughput, not latency: G1 costs 37 CPU seconds over 2 M records, this 35.
        _JAVA_OPTIONS: (
            f"-XX:+UseParallelGC -Dlog4j2.configurationFile={_LOGGING} -Drebalance.monitor.log.level={level}"
            f' "-Djava.io.tmpdir={folder}"'  # where Spark puts its files unless it is told otherwise
        ),
        "spark.scheduler.mode": "FAIR",
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.enabled": "false",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Nothing is kept in Spark's own catalog, but it makes its folder: not in whatever folder we were started in.
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        # The source's newer offset fetching leaves internal topics out without a word: no rows from __consumer_offsets.
        "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB_PROVIDER,
        # Half the floor of a stateful batch: 0.5 s instead of 0.9 s.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # Frozen by the checkpoint, so it is ours to say, never Spark's default of 200.
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        "spark.sql.adaptive.enabled": "false",
        # Rows are few and small after the combine step; before it, large Arrow batches save half the time.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.metricsEnabled": "false",
        # A source that asks a dead broker cannot be interrupted: without an end to patience that took 44 s of a stop.
        "spark.sql.streaming.stopTimeout": "5s",
        # Delta's log is read once, when a checkpoint is made: one partition instead of fifty for a few files.
        "spark.databricks.delta.snapshotPartitions": "1",
    }
