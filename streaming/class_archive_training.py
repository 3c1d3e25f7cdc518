"""Create the class archives of Spark and of the embedded broker.

`python -m streaming.class_archive_training` runs a broker, a consumer group and a monitor until the monitor is ready.
Then the module reads the stored state, so Spark's JVM also loads the classes of the state store. When the two JVMs end,
they write the classes that they have loaded. The run takes one minute. `rebalance-monitor jars` runs this module in a
separate process, without the user's settings.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import NewTopic
from kafka.errors import KafkaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streaming.class_archive import ClassArchive, archives_folder, recording_options
from streaming.config.load import Settings
from streaming.config.settings import KafkaSettings, MetricsSettings, PathSettings, SparkSettings
from streaming.embedded import EmbeddedBroker
from streaming.errors import RemedyError
from streaming.jars import resolve
from streaming.java import find_java
from streaming.run.monitor import Monitor
from streaming.run.query.restore import stored_state
from streaming.spark.checkpoint_files import QUERY
from streaming.spark.launch.conf import JAVA_OPTIONS, session_conf
from streaming.spark.launch.jvm import spark_class_path, spark_home, spark_launch

_PATIENCE_SECONDS = 300.0
_NEEDED_BYTES = 600_000_000
_TOPIC = "training"


class TrainingError(RemedyError):
    """Error: the class archives could not be created. Without class archives, the JVMs start more slowly."""


def archives() -> tuple[ClassArchive, ClassArchive]:
    """Return the archive of Spark and the archive of the broker. Raises JarsError or JavaError."""
    java, conf = find_java(), session_conf(SparkSettings(), resolve("spark"), Path(), submitted=False)
    of_spark = ClassArchive("spark", java, spark_class_path(conf, spark_home()))
    return of_spark, ClassArchive("broker", java, [str(jar) for jar in resolve("broker")])


def create_archives() -> None:
    """If the archive of Spark or of the broker is missing, create both archives. Raises RemedyError or OSError."""
    of_spark, of_broker = archives()
    if of_spark.find() and of_broker.find():
        return
    folder = archives_folder()
    folder.mkdir(parents=True, exist_ok=True)
    if (free_bytes := shutil.disk_usage(folder).free) < _NEEDED_BYTES:
        raise TrainingError(
            f"{folder} has {free_bytes // 1_000_000} MB free, but {_NEEDED_BYTES // 1_000_000} MB are needed"
        )
    with TemporaryDirectory(dir=folder) as work:
        partial_spark, partial_broker = Path(work, "spark.jsa"), Path(work, "broker.jsa")
        kafka = EmbeddedBroker(Path(work, "broker"), java_options=recording_options(partial_broker))
        with kafka:
            with _members(kafka.bootstrap_servers):
                _watch(kafka.bootstrap_servers, Path(work), partial_spark)
            kafka.stop(_PATIENCE_SECONDS)  # the broker's JVM writes its archive when it ends
        for archive, partial in ((of_spark, partial_spark), (of_broker, partial_broker)):
            if not partial.exists():
                raise TrainingError(f"Java did not write {partial.name}")
            archive.publish(partial)


@contextmanager
def _members(bootstrap_servers: str) -> Iterator[None]:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    admin.create_topics([NewTopic(_TOPIC, 2, 1)])
    admin.close()
    consumer = KafkaConsumer(_TOPIC, bootstrap_servers=bootstrap_servers, group_id=_TOPIC, enable_auto_commit=False)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not consumer.assignment() and time.monotonic() < deadline:
        consumer.poll(timeout_ms=200)
    consumer.commit()
    try:
        yield
    finally:
        consumer.close()


def _watch(bootstrap_servers: str, work: Path, partial: Path) -> None:
    options = " ".join(shlex.quote(option) for option in recording_options(partial))
    settings = Settings(
        kafka=KafkaSettings(bootstrap_servers=bootstrap_servers),
        paths=PathSettings(checkpoint=str(work / "checkpoint"), tables=str(work / "tables")),
        metrics=MetricsSettings(port=0),
        spark=SparkSettings.model_validate({"class_archive": False, "conf": {JAVA_OPTIONS: options}}),
    )
    stop = threading.Event()
    query = f"{settings.paths.checkpoint}/{QUERY}"

    def stop_when_ready(port: int) -> None:
        threading.Thread(target=_stop_when_ready, args=(port, query, stop), daemon=True).start()

    with spark_launch(settings.spark, exit_seconds=_PATIENCE_SECONDS) as launch:
        Monitor(settings, stop, stop_when_ready).run(launch)


def _stop_when_ready(port: int, query: str, stop: threading.Event) -> None:
    try:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline and not _is_ready(port):
            time.sleep(0.2)
        with suppress(Py4JError, PySparkException):  # an error here only means that the archive contains fewer classes
            stored_state(SparkSession.builder.getOrCreate(), query)
    finally:
        stop.set()


def _is_ready(port: int) -> bool:
    """Return True if the monitor is ready. The request uses no proxy, because a proxy cannot connect to this port."""
    directly = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with directly.open(f"http://127.0.0.1:{port}/-/ready", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def main() -> None:
    """Create the archives. After a failure, exit with one line that contains the reason."""
    try:
        create_archives()
    except (RemedyError, KafkaError, OSError) as error:
        sys.exit(f"no class archives: {error}")


if __name__ == "__main__":
    main()
