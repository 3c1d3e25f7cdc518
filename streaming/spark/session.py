"""The SparkSession the monitor runs in."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from streaming.config.settings import SparkSettings

_JVM_EXIT_SECONDS = 5.0
_LOGGING = Path(__file__).with_name("log4j2.properties")
ROCKSDB_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def spark_session(settings: SparkSettings, jars: Sequence[Path], java_home: Path) -> SparkSession:
    """Start Spark. The workers run this very interpreter: the driver's `sys.path` is not theirs."""
    os.environ["JAVA_HOME"] = str(java_home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("kafka-rebalance-monitor").master(settings.master)
    for name, value in {**_conf(settings, jars), **settings.conf}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel(settings.log_level)
    return session


def stop_spark(session: SparkSession) -> None:
    """Stop the session and its JVM, and return when that is gone: `session.stop()` alone leaves it running."""
    gateway = session.sparkContext._gateway  # noqa: SLF001 - PySpark has no public way to the process it started
    session.stop()
    process = gateway.proc  # type: ignore[union-attr]
    process.stdin.close()  # at which it exits
    try:
        process.wait(_JVM_EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _conf(settings: SparkSettings, jars: Sequence[Path]) -> Mapping[str, str]:
    level = settings.log_level
    return {
        "spark.jars": ",".join(str(jar) for jar in jars),
        "spark.driver.memory": settings.driver_memory,
        # Workers find pandas, Arrow and our steps imported: 2 CPU seconds less in a cold start's first batch.
        "spark.python.daemon.module": "streaming.spark.daemon",
        # A batch is throughput, not latency: G1 costs 37 CPU seconds over 2 M records, this 35.
        "spark.driver.extraJavaOptions": (
            f"-XX:+UseParallelGC -Dlog4j2.configurationFile={_LOGGING} -Drebalance.monitor.log.level={level}"
        ),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.enabled": str(settings.ui).lower(),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Nothing is kept in Spark's own catalog, but it makes its folder: not in whatever folder we were started in.
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir(), "kafka-rebalance-monitor-warehouse")),
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
        # Delta's log is read once, when a checkpoint is made: one partition instead of fifty for a few files.
        "spark.databricks.delta.snapshotPartitions": "1",
    }
