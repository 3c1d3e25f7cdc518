"""All settings of the Spark session. The rules of `session.py` explain the values."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from streaming.config.secret_settings import is_public
from streaming.config.settings import SparkSettings

_LOGGING = Path(__file__).parents[1] / "log4j2.properties"
_COLLECTOR = "-XX:+UseSerialGC -XX:NewRatio=8 -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=20"
"""JVM options for a small young generation, and for a heap that grows only if necessary and shrinks again.

Compared with ParallelGC and its default sizes, 10 million records need 15 % fewer CPU seconds and 300 MiB less memory.
A driver that `spark-submit` starts has the options of `spark-submit` instead.
"""
_COMPILER = (
    "-XX:Tier4InvocationThreshold=15000 -XX:Tier4MinInvocationThreshold=1800"
    " -XX:Tier4CompileThreshold=45000 -XX:Tier4BackEdgeThreshold=120000"
)
"""JVM options. C2 compiles a method only after three times the default number of calls.

So C2 compiles fewer methods during a start. Compared with the defaults, 2 million records need 6 % fewer CPU seconds,
and 10 million records need the same CPU time. Without C2, the second half of 10 million records took 1.7 times as long.
So C2 stays enabled.
"""
_SELECTS_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_DEFAULT_OPTIONS = "spark.driver.defaultJavaOptions"
CLASS_PATH = "spark.driver.extraClassPath"
MAX_RESULT_SIZE = "spark.driver.maxResultSize"
_REDACTION = "spark.redaction.regex"
_REDACTED_BY_SPARK = "(?i)secret|password|token|access[.]?key"
_LAUNCH_ONLY = re.compile(r"spark\.(driver\.(extra|default)|jars|files|archives|submit|plugins|master|redaction|log)")
"""A pattern for the names of settings that have an effect only at the start of the JVM."""
ROCKSDB_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

SUBMITTED = frozenset(
    {
        "spark.master",
        "spark.jars",
        CLASS_PATH,
        "spark.driver.memory",
        MAX_RESULT_SIZE,
        JAVA_OPTIONS,
        "spark.driver.host",
        "spark.driver.bindAddress",
    }
)
"""Settings that cannot change while the driver runs, or that `spark-submit` has already set (rule 2)."""


def session_conf(
    settings: SparkSettings, jars: Sequence[Path], folder: Path, *, submitted: bool, clusters: int = 1
) -> Mapping[str, str]:
    """Return all settings of the session (rules 1 to 7). Spark's temporary files go into `folder`."""
    loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    is_here = settings.master.startswith("local")
    master = re.sub(r"^local\[(\d+)\]$", lambda slots: f"local[{int(slots[1]) * clusters}]", settings.master)
    user_conf = {name: value.get_secret_value() for name, value in settings.conf.items()}
    has_collector = any(_SELECTS_COLLECTOR.search(user_conf.get(name, "")) for name in (JAVA_OPTIONS, _DEFAULT_OPTIONS))
    own = _conf(settings, jars, folder, "" if has_collector else _COLLECTOR)
    conf = {"spark.master": master, **(loopback if is_here else {}), **own, **user_conf, **_redaction(user_conf)}
    for name, separator in ((JAVA_OPTIONS, " "), (CLASS_PATH, os.pathsep)):
        if name in own and name in user_conf:
            conf[name] = f"{own[name]}{separator}{user_conf[name]}"
    return {name: value for name, value in conf.items() if not (submitted and name in SUBMITTED)}


def launch_conf(conf: Mapping[str, str], user_conf: Collection[str]) -> Mapping[str, str]:
    """Return the settings for the command line of the JVM (rule 5). `user_conf` has the names in `spark.conf`.

    >>> launch_conf({"spark.sql.session.timeZone": "UTC", "spark.hadoop.fs.s3a.key": "x"}, ["spark.hadoop.fs.s3a.key"])
    {'spark.sql.session.timeZone': 'UTC'}
    """
    return {
        name: value
        for name, value in conf.items()
        if name not in user_conf or _LAUNCH_ONLY.match(name) or is_public(name, value)
    }


def _redaction(user_conf: Mapping[str, str]) -> Mapping[str, str]:
    """Return the pattern of the setting names and values that Spark hides on web pages and in logs."""
    user_pattern = user_conf.get(_REDACTION, _REDACTED_BY_SPARK)
    hidden = (
        name.removeprefix("spark.hadoop.") for name, value in sorted(user_conf.items()) if not is_public(name, value)
    )
    return {_REDACTION: "|".join([user_pattern, *map(re.escape, hidden), "://[^/\\s]*:.*@"])}


def is_one_jvm(master: str) -> bool:
    """Return True if driver and executors are one JVM.

    >>> is_one_jvm("local[2]"), is_one_jvm("local-cluster[2,1,1024]")
    (True, False)
    """
    return re.match(r"local(\[|$)", master) is not None


def _conf(settings: SparkSettings, jars: Sequence[Path], folder: Path, collector: str) -> Mapping[str, str]:
    level, paths = settings.log_level, [str(jar) for jar in jars]
    return {
        # Rule 8. With the master `local-cluster`, executors are separate processes, so `spark.jars` is necessary.
        **({CLASS_PATH: os.pathsep.join(paths)} if is_one_jvm(settings.master) else {"spark.jars": ",".join(paths)}),
        "spark.driver.memory": settings.driver_memory,
        # The rows of a batch go through the driver's heap. So a larger heap must allow a larger batch. Spark's default
        # is 1g for every heap size.
        MAX_RESULT_SIZE: settings.driver_memory,
        # pandas, Arrow and the steps are imported before workers start. This saves 2 CPU seconds in the first batch.
        "spark.python.daemon.module": "streaming.spark.daemon",
        JAVA_OPTIONS: (
            f"{collector} {_COMPILER} -Dlog4j2.configurationFile={_LOGGING} -Drebalance.monitor.log.level={level}"
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
        # The newer offset fetching of Spark's Kafka source ignores internal topics. It would return no records.
        "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB_PROVIDER,
        # This almost halves the minimum time of a stateful batch: 0.5 s instead of 0.9 s.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # The number cannot change for an existing checkpoint. The monitor sets it, because Spark's default is 200.
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        "spark.sql.adaptive.enabled": "false",
        # Large Arrow batches halve the time of the combine step. After this step, rows are few and small.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        # With Spark's default of 256 MB, two tasks that read records of 1 MB need more than 1 GB outside the heap. Java
        # limits this memory to the size of the heap. A full batch of commits has 8 MB, so this limit costs nothing.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(32 << 20),
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.metricsEnabled": "false",
        # A source that waits for a dead broker cannot be interrupted. Without this timeout, a stop took 44 s.
        "spark.sql.streaming.stopTimeout": "5s",
        # Delta's log is read once, when a checkpoint is created. One partition instead of 50 is enough for few files.
        "spark.databricks.delta.snapshotPartitions": "1",
    }
