"""Tests that a failure is one log line, and that a failure which no retry can repair ends the run."""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from kafka.errors import KafkaConnectionError, NodeNotReadyError
from py4j.protocol import Py4JNetworkError

from streaming.cli.text.logs import _is_not_of_py4j
from streaming.delta.on_disk import DeltaTables
from streaming.delta.table_files import UnusableTableError
from streaming.delta.tables import REBALANCES
from streaming.errors import MAY_PASS, STAYS, RemedyError
from streaming.run.failures import (
    FailureLog,
    SparkEndedError,
)
from streaming.run.query import restart_check as restart_check_module
from streaming.run.query.batches import BatchFailedError, BatchSink
from streaming.run.query.restart_check import CheckpointRemovedError, check_restart_helps
from streaming.spark import folder as folder_module
from streaming.spark.checkpoint import CheckpointDamagedError
from tests.streaming.spark.checkpoints import remove, truncate, unpack_checkpoint
from tests.streaming.spark.test_checkpoint import LocalFiles

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tables/rebalances")


@pytest.fixture
def caplog_of_all(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="streaming")
    return caplog


def test_a_reason_is_logged_once_until_a_success_resets_it(caplog_of_all: pytest.LogCaptureFixture) -> None:
    """A full disk caused a page of stack traces every second."""
    failures = FailureLog("eu", "a sample")
    for _ in range(3):
        failures.report(FULL)
    failures.reset()
    failures.report(FULL)
    errors = [record for record in caplog_of_all.records if record.levelno == logging.ERROR]
    line = "eu: a sample failed; trying again: [Errno 28] No space left on device: '/tables/rebalances'"
    assert [record.getMessage() for record in errors] == [line] * 2
    assert not any(record.exc_info for record in errors)


def test_an_unexpected_error_is_logged_with_its_trace_and_a_lost_spark_only_at_debug_level(
    caplog_of_all: pytest.LogCaptureFixture,
) -> None:
    """A killed JVM caused a page of Py4J errors from each thread."""
    failures = FailureLog("eu", "a sample")
    failures.report(ValueError("a bug"))
    failures.report(Py4JNetworkError("Answer from Java side is empty"))
    failures.report(ConnectionRefusedError("[Errno 111] Connection refused"))
    bug, *gone = caplog_of_all.records
    assert bug.exc_info
    assert [record.levelno for record in gone] == [logging.DEBUG] * 2


def test_brokers_that_do_not_answer_are_one_warning_for_each_outage(caplog_of_all: pytest.LogCaptureFixture) -> None:
    """Rule 4. A poll repeated its warning at every interval."""
    failures = FailureLog("eu", "a poll")
    for _ in range(2):
        failures.report(KafkaConnectionError("gone"))
        failures.report(NodeNotReadyError("still"))
        failures.reset()
        failures.reset()
    lines = [(one.levelname, one.getMessage()) for one in caplog_of_all.records if one.levelno >= logging.INFO]
    outage = "eu: brokers do not answer (KafkaConnectionError: gone); a poll failed, trying again"
    assert lines == 2 * [("WARNING", outage), ("INFO", "eu: brokers answer again (a poll succeeded)")]


def test_errors_that_py4j_writes_to_the_root_logger_are_left_out() -> None:
    def record(name: str, path: str) -> logging.LogRecord:
        return logging.LogRecord(name, logging.ERROR, path, 1, "Exception while sending command.", None, None)

    assert not _is_not_of_py4j(record("root", "/venv/py4j/java_gateway.py"))
    assert _is_not_of_py4j(record("root", "/venv/ours.py"))
    assert _is_not_of_py4j(record("streaming.run", "/py4j/streaming/run.py"))


def test_a_batch_keeps_its_failure_and_raises_one_line_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark put the error into a long message that ended in "Traceback (most recent call last):".

    Spark searches this message by a regular expression, which overflowed the stack.
    So a stop in the middle of a batch printed a thousand lines.
    """
    sink = object.__new__(BatchSink)
    sink.on_end = lambda: None

    def fail(*_: object) -> None:
        raise FULL

    monkeypatch.setattr(sink, "_apply", fail)
    with pytest.raises(BatchFailedError, match=r"No space left on device") as raised:
        sink(None, 7)  # type: ignore[arg-type]
    assert raised.value.__suppress_context__
    assert sink.failure is FULL
    monkeypatch.setattr(sink, "_apply", lambda *_: 0)
    sink(None, 8)  # type: ignore[arg-type]
    assert sink.failure is None


@pytest.mark.parametrize(
    ("number", "disk"),
    [
        (errno.ENOSPC, SimpleNamespace(f_flag=0, f_bavail=1, f_frsize=512)),
        (errno.EROFS, SimpleNamespace(f_flag=os.ST_RDONLY, f_bavail=1 << 20, f_frsize=512)),
    ],
)
def test_a_disk_that_cannot_be_written_is_detected_before_an_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, disk: object
) -> None:
    """delta-rs panics on a full disk: it prints a page of Rust to standard error, and Python cannot catch it."""
    tables = DeltaTables(str(tmp_path))
    tables.open_all()
    rows = pa.table({"cluster": ["a"], "offsets_topic_offset": [1]})
    with monkeypatch.context() as patch:
        patch.setattr(folder_module.os, "statvfs", lambda _: disk)
        with pytest.raises(OSError, match=r"rebalances") as refused:
            tables.append(REBALANCES, rows)
    assert refused.value.errno == number


class FailedRun:
    """A checkpoint and tables of a run whose query failed."""

    def __init__(self, folder: Path) -> None:
        self.checkpoint = unpack_checkpoint(folder)
        self.files = LocalFiles(self.checkpoint)
        self.last_batch = 21
        self.root = str(folder / "tables")

    def check(self, *, is_new: bool = True) -> None:
        """Check if the query can be started again."""
        tables = SimpleNamespace(root=self.root, last_batch=lambda: self.last_batch)
        check_restart_helps(None, self.files, tables, is_new=is_new)  # type: ignore[arg-type]


@pytest.fixture
def failed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FailedRun:
    monkeypatch.setattr(restart_check_module, "is_running", lambda _: True)
    return FailedRun(tmp_path)


def test_a_query_on_undamaged_files_is_started_again(failed_run: FailedRun) -> None:
    failed_run.check()


@pytest.mark.parametrize(
    ("damage", "error", "exit_code", "why"),
    [
        (shutil.rmtree, CheckpointRemovedError, MAY_PASS, "the next start creates a new one"),
        (
            lambda at: shutil.rmtree(at / "query"),
            CheckpointDamagedError,
            STAYS,
            "the query would begin at batch 0 again",
        ),
        (lambda at: remove(at / "monitor.json"), CheckpointDamagedError, STAYS, "the checkpoint's identity is unknown"),
        (lambda at: truncate(at / "query/commits/20"), CheckpointDamagedError, STAYS, "no retry repairs the file"),
    ],
)
def test_a_query_on_damaged_files_ends_the_run(
    failed_run: FailedRun, damage: Callable[[Path], None], error: type[RemedyError], exit_code: int, why: str
) -> None:
    """The monitor retried for ever with a removed checkpoint, although a restart creates a new one."""
    damage(failed_run.checkpoint)
    with pytest.raises(error) as ended:
        failed_run.check()
    assert ended.value.exit_code == exit_code, why
    assert str(failed_run.checkpoint) in str(ended.value)
    assert len(str(ended.value).splitlines()) == 1


class RemoteFiles(LocalFiles):
    """Files that only Spark's client can read. If `is_away` is True, the storage does not answer."""

    is_away = False

    def uri(self, name: str) -> str:
        """Return the full URI."""
        return f"s3a://bucket/checkpoint/{name}"

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None if the file does not exist."""
        if self.is_away:
            raise OSError(errno.EIO, "UnknownHostException: bucket", name)
        return super().read(name)


@pytest.mark.parametrize("name", ["query/offsets/21", "query/state/0/1/12.changelog", "query/metadata"])
def test_damage_on_remote_storage_ends_the_run_with_the_file_and_the_remedy(failed_run: FailedRun, name: str) -> None:
    """The query failed and was started again for ever, because only local files were checked."""
    failed_run.files = RemoteFiles(failed_run.checkpoint)
    failed_run.check()
    truncate(failed_run.checkpoint / name)
    failed_run.check(is_new=False)  # reading all files takes seconds, so each reason is checked once
    with pytest.raises(CheckpointDamagedError, match=r"^checkpoint s3a://bucket/checkpoint is damaged") as ended:
        failed_run.check()
    assert name in str(ended.value)
    assert "run `rebalance-monitor rebuild`" in str(ended.value)
    assert ended.value.exit_code == STAYS


def test_a_query_on_remote_storage_that_does_not_answer_is_started_again(failed_run: FailedRun) -> None:
    """The run ended with exit code 78, so nothing started the monitor after the end of the outage."""
    failed_run.files = files = RemoteFiles(failed_run.checkpoint)
    files.is_away = True
    failed_run.check()


def test_a_checkpoint_older_than_the_tables_ends_the_run(failed_run: FailedRun) -> None:
    """A checkpoint from a backup repeats batch numbers. The tables skip repeated batches, so rows would be lost."""
    failed_run.last_batch = 22
    with pytest.raises(
        CheckpointDamagedError, match="older than the tables: it ends at batch 21, and the tables have batch 22"
    ):
        failed_run.check()


@pytest.mark.parametrize("root", ["tables", "s3a://bucket/tables"])
def test_a_table_that_was_removed_while_the_monitor_ran_ends_the_run_with_one_line(
    failed_run: FailedRun, tmp_path: Path, root: str
) -> None:
    """The run ended with 60 lines of a stack trace. Tables on remote storage do not end the run (rule 4)."""
    tables = DeltaTables(str(tmp_path / "tables"))
    tables.open_all()
    shutil.rmtree(tmp_path / "tables" / REBALANCES.name)
    if root != "tables":
        tables.root = root
        check_restart_helps(None, failed_run.files, tables, is_new=True)  # type: ignore[arg-type]
        return
    with pytest.raises(UnusableTableError, match=f"^a table in {tmp_path}/tables was removed or replaced") as ended:
        check_restart_helps(None, failed_run.files, tables, is_new=True)  # type: ignore[arg-type]
    assert ended.value.exit_code == STAYS
    assert "run `rebalance-monitor rebuild`" in str(ended.value)
    assert len(str(ended.value).splitlines()) == 1


def test_a_lost_spark_is_one_line(failed_run: FailedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart_check_module, "is_running", lambda _: False)
    with pytest.raises(SparkEndedError) as ended:
        failed_run.check()
    assert ended.value.exit_code == MAY_PASS
    assert len(str(ended.value).splitlines()) == 1
