"""Tests of everything that needs Spark and no broker. All tests share one session; the last test stops it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import py4j.java_gateway
import py4j.protocol
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from streaming.config.settings import SparkSettings
from streaming.spark.file_source_log import shorten_file_source_log
from streaming.spark.files import Files
from streaming.spark.query import choose_file_manager
from streaming.spark.session import spark_session
from streaming.spark.source import feedback_rows, state_rows_file
from tests.conftest import SPARK_CONF

pytestmark = pytest.mark.slow

COMPACT_INTERVAL = 3


@dataclass
class Spark:
    """A session that a test can stop."""

    session: SparkSession
    stop: Callable[[], None]


@pytest.fixture(scope="module")
def spark() -> Iterator[Spark]:
    with ExitStack() as stack:
        yield Spark(stack.enter_context(spark_session(SparkSettings.model_validate({"conf": SPARK_CONF}))), stack.close)


def test_a_write_replaces_a_file_with_its_checksums_and_leaves_no_other_file(spark: Spark, tmp_path: Path) -> None:
    """The old file was deleted before the rename. A kill between the two lost the file."""
    files = Files(spark.session, str(tmp_path))
    names = ["monitor.json", "samples/lag", "feedback/a.json"]
    for content in (b"old" * 1000, b"new"):
        for name in names:
            files.write(name, content)
    assert [files.read(name) for name in names] == [b"new"] * 3
    on_disk = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert on_disk == sorted([*names, ".monitor.json.crc", "samples/.lag.crc", "feedback/.a.json.crc"])


def test_a_file_is_never_missing_while_it_is_replaced(spark: Spark, tmp_path: Path) -> None:
    """Law: a kill at any moment leaves the old or the new content. The test reads the file before each step.

    Hadoop also compares the content with its checksums.
    """
    files, reader = Files(spark.session, str(tmp_path)), Files(spark.session, str(tmp_path))
    files.write("monitor.json", b"old")
    steps: list[bytes | None] = []

    class Watched:
        def __init__(self, hadoop: object) -> None:
            self._hadoop = hadoop

        def __getattr__(self, name: str) -> object:
            steps.append(reader.read("monitor.json"))
            return getattr(self._hadoop, name)

    files._fs = Watched(files._fs)
    files.write("monitor.json", b"new")
    assert len(steps) == 2, "create, and delete of the checksums"
    assert set(steps) == {b"old"}
    assert reader.read("monitor.json") == b"new"


def test_a_file_exists_at_every_moment_of_many_replacements(spark: Spark, tmp_path: Path) -> None:
    """Hadoop's `FileContext` deletes the old file of a local disk before it renames the new one."""
    files = Files(spark.session, str(tmp_path))
    files.write("monitor.json", b"0")
    is_over, missing = threading.Event(), 0

    def look() -> None:
        nonlocal missing
        while not is_over.is_set():
            missing += not (tmp_path / "monitor.json").exists()

    with ThreadPoolExecutor(1) as looking:
        watched = looking.submit(look)
        for number in range(300):
            files.write("monitor.json", f"{number}".encode())
        is_over.set()
        watched.result()
    assert missing == 0
    assert files.read("monitor.json") == b"299"


def test_in_an_object_store_a_file_is_written_directly(spark: Spark, tmp_path: Path) -> None:
    """An object store copies a file that is renamed, and shows a new file only when it is complete."""
    files = Files(spark.session, str(tmp_path))
    assert not files._is_object_store, "a disk has an atomic rename"
    files._scheme = "s3a"
    for content in (b"old", b"new"):
        files.write("samples/lag", content)
        assert files.names("samples") == ["lag"]
    assert files.read("samples/lag") == b"new"


def test_the_next_write_or_the_next_start_removes_the_file_of_an_interrupted_write(
    spark: Spark, tmp_path: Path
) -> None:
    """A kill during a write left `.<uuid>.partial` for ever."""
    files = Files(spark.session, str(tmp_path))
    for name in ("samples/.lag.partial", "feedback/.polled-1-2.json.partial"):
        files.write(name, b"half")
    files.write("samples/lag", b"whole")
    files.remove_partial_files("feedback")
    assert [path.name for path in sorted(tmp_path.rglob("*")) if path.is_file()] == [".lag.crc", "lag"]


def test_only_checkpoints_on_a_local_disk_have_the_class_that_starts_few_processes(spark: Spark) -> None:
    """HDFS and object stores keep Spark's default, and so does a user who chose a class in `spark.conf`."""
    conf, name, users_choice = spark.session.conf, "spark.sql.streaming.checkpointFileManagerClass", "org.example.Mine"
    conf.unset(name)
    for remote in ("hdfs://host:9000/checkpoint", "s3a://bucket/checkpoint"):
        choose_file_manager(spark.session, remote)
        assert conf.get(name, "default") == "default"
    conf.set(name, users_choice)
    choose_file_manager(spark.session, "file:/var/lib/checkpoint")
    assert conf.get(name) == users_choice
    conf.unset(name)
    choose_file_manager(spark.session, "file:/var/lib/checkpoint")
    assert str(conf.get(name)).endswith(".FileSystemBasedCheckpointFileManager")


class FeedbackQuery:
    """A real query of the feedback files, which shortens the log of the file source in each batch."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self._session = session
        self._folder = folder
        self.files = Files(session, str(folder))
        self.files.make_folder("feedback")
        self.rows: list[str] = []
        self.entries: list[int] = []
        self.fails_next = False

    def send(self, name: str) -> None:
        """Write one feedback file with one row."""
        self.files.write(f"feedback/{name}.json", state_rows_file([("group", name, b"")]))

    def run(self, *names: str) -> None:
        """Start the query, send each file after the one before was read, and stop the query."""
        choose_file_manager(self._session, self.files.uri("query"))
        rows = feedback_rows(self._session, self.files.uri("feedback"))
        writer = rows.writeStream.option("checkpointLocation", self.files.uri("query")).foreachBatch(self._on_batch)
        query = writer.start()
        try:
            query.processAllAvailable()
            for name in names:
                self.send(name)
                query.processAllAvailable()
        finally:
            query.stop()

    def _on_batch(self, batch: DataFrame, _: int) -> None:
        shorten_file_source_log(self.files)
        if self.fails_next:
            self.fails_next = False
            raise RuntimeError("killed")
        self.rows += [row["state_key"] for row in batch.collect()]
        self.entries.append(self.log_entries())

    def log_entries(self) -> int:
        """Return the number of entries in the newest `.compact` file."""
        compact = [int(path.stem) for path in self._folder.glob("query/sources/0/*.compact")]
        newest = self._folder / f"query/sources/0/{max(compact, default=-1)}.compact"
        return len(newest.read_text().splitlines()) - 1 if compact else 0


def test_the_log_of_sparks_file_source_stays_short_and_no_row_is_lost_or_doubled(spark: Spark, tmp_path: Path) -> None:
    """With `source.kind = "admin-api"` the log grew by 2 MB per day, and Spark wrote all of it again each minute.

    The query is stopped between batches, fails inside a batch after the log was shortened, and starts again. A file
    that Spark read but did not delete is not read again.
    """
    spark.session.conf.set("spark.sql.streaming.fileSource.log.compactInterval", str(COMPACT_INTERVAL))
    query = FeedbackQuery(spark.session, tmp_path)
    first, second, third = ([f"{part}-{at:02}" for at in range(12)] for part in "abc")
    query.run(*first)
    last = tmp_path / "feedback" / f"{first[-1]}.json"
    assert last.exists(), "Spark deletes the files of a batch only during the next batch"
    query.fails_next = True
    query.send(second[0])
    with pytest.raises(StreamingQueryException, match="killed"):
        query.run()
    query.run(*second[1:])
    query.run()
    query.run(*third)
    assert query.rows == [*first, *second, *third]
    assert max(query.entries) <= 2 * COMPACT_INTERVAL
    log = [json.loads(line) for line in last_compact(tmp_path).read_text().splitlines()[1:]]
    assert all(entry.keys() == {"path", "timestamp", "batchId"} for entry in log)


def last_compact(checkpoint: Path) -> Path:
    return max(checkpoint.glob("query/sources/0/*.compact"), key=lambda path: int(path.stem))


def test_after_a_stop_a_second_session_starts_without_the_jvm_of_the_first(spark: Spark) -> None:
    """PySpark translates Java's errors for the whole process, and uses the JVM of the first session for it.

    When Python releases a Java object, a thread of py4j notifies this JVM. While the JVM ended, this caused a stack
    trace before the line with the reason of a refused start.
    """
    java_client = _used_client(spark.session)
    spark.stop()
    _check_stopped(java_client)
    with spark_session(SparkSettings()) as session:
        java_client = _used_client(session)
    _check_stopped(java_client)


def _used_client(session: SparkSession) -> py4j.java_gateway.GatewayClient:
    assert session.range(3).count() == 3
    assert py4j.java_gateway.get_return_value is not py4j.protocol.get_return_value
    java_client = session.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    assert java_client.is_connected
    return java_client


def _check_stopped(java_client: py4j.java_gateway.GatewayClient) -> None:
    assert not java_client.is_connected, "py4j sends nothing to a stopped JVM"
    assert py4j.java_gateway.get_return_value is py4j.protocol.get_return_value
