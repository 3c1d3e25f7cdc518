"""Creates class archives, with which the many JVMs of the slow tests start faster.

A cold Spark spends most of its processor time on loading, checking and compiling classes. With a class archive (JEP
350) and only the C1 compiler, a session with two small queries takes 7 instead of 17 CPU seconds. The start of a broker
takes 3.3 instead of 6.9. The behaviour of the JVMs does not change.

`python -m tests.class_archives` creates the archives, once for each Java version and set of jars. `make test` runs it.
Without archives, JVMs start as usual. A JVM ignores an archive that does not match it.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

import streaming.jars
import streaming.spark.session
from streaming.config.load import load_settings
from streaming.embedded import EmbeddedBroker
from streaming.embedded.broker import PERFORMANCE_OPTIONS
from streaming.java import find_java
from streaming.run.monitor import Monitor
from streaming.state.monitor_state import MonitorState

SPARK_CONF = "REBALANCE_MONITOR_SPARK__CONF"
_LOCK = Path(streaming.jars.__file__).with_name("jars.lock")
_SESSION = Path(streaming.spark.session.__file__)
"""It says what is on Spark's class path, in which order."""
_PATIENCE_SECONDS = 300.0


def environment() -> Mapping[str, str]:
    """Return the environment variables that make brokers and monitors use the archives. Empty without archives."""
    spark, broker = _archives()
    if not (spark.exists() and broker.exists()):
        return {}
    options = {archive: f"-XX:SharedArchiveFile={archive} -XX:TieredStopAtLevel=1" for archive in (spark, broker)}
    return {
        PERFORMANCE_OPTIONS: options[broker],
        SPARK_CONF: json.dumps({"spark.driver.extraJavaOptions": options[spark]}),
    }


def _archives() -> tuple[Path, Path]:
    """Return the paths of the archives of Spark and of the broker. They depend on Java, on the jars and on PySpark."""
    java = subprocess.run([find_java(), "-version"], capture_output=True, check=True).stderr
    versions = java + _LOCK.read_bytes() + version("pyspark").encode() + _SESSION.read_bytes()
    folder = Path(sys.prefix, "class-archives", hashlib.sha256(versions).hexdigest()[:16])
    return folder / "spark.jsa", folder / "broker.jsa"


def create_archives() -> None:
    """Run a broker and a monitor until it is ready. Both JVMs write their loaded classes when they end."""
    spark, broker = _archives()
    if spark.exists() and broker.exists():
        return
    spark.parent.mkdir(parents=True, exist_ok=True)
    unfinished = [archive.with_suffix(".unfinished") for archive in (spark, broker)]
    of_spark, of_broker = (f"-XX:ArchiveClassesAtExit={archive}" for archive in unfinished)
    with TemporaryDirectory() as work:
        kafka = EmbeddedBroker(Path(work, "broker"), java_options=[of_broker, "-Xlog:disable"])
        with kafka:
            _commit(kafka)
            _watch(kafka, Path(work), of_spark)
            kafka.stop(_PATIENCE_SECONDS)
    for one, archive in zip(unfinished, (spark, broker), strict=True):
        one.replace(archive)


def _commit(kafka: EmbeddedBroker) -> None:
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    admin.create_topics([NewTopic("t", 2, 1)])
    admin.close()
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g"})
    consumer.subscribe(["t"])
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not consumer.assignment() and time.monotonic() < deadline:
        consumer.poll(0.1)
    consumer.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
    consumer.close()


def _watch(kafka: EmbeddedBroker, work: Path, java_option: str) -> None:
    """Run a monitor in this process, because only here the time limit for the end of Spark's JVM can be changed."""
    file = work / "monitor.toml"
    file.write_text(
        f'[kafka]\nbootstrap_servers = "{kafka.bootstrap_servers}"\n'
        f'[paths]\ncheckpoint = "{work}/checkpoint"\ntables = "{work}/tables"\n[metrics]\nport = 0\n'
        f'[spark.conf]\n"spark.driver.extraJavaOptions" = "{java_option} -Xlog:disable"\n'
    )
    streaming.spark.session._JVM_EXIT_SECONDS = _PATIENCE_SECONDS
    stop = threading.Event()
    monitor = Monitor(load_settings(file), stop, lambda _: None)
    [watch] = monitor._watches
    threading.Thread(target=_stop_when_ready, args=(watch.monitor_state, stop), daemon=True).start()
    monitor.run()


def _stop_when_ready(monitor_state: MonitorState, stop: threading.Event) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not monitor_state.view().health.ready and time.monotonic() < deadline:
        time.sleep(0.2)
    stop.set()


if __name__ == "__main__":
    create_archives()
