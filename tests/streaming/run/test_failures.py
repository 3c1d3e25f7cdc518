"""What fails while the monitor runs is one line, and ends the run where trying again is no use."""

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
from py4j.protocol import Py4JNetworkError

from streaming.cli.logs import _is_not_of_py4j
from streaming.delta.on_disk import DeltaTables
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


def test_a_reason_is_one_line_until_it_went_well_in_between(caplog_of_all: pytest.LogCaptureFixture) -> None:
    """A full disk was a page of traces, each second."""
    failures = FailureLog("eu", "a sample")
    for _ in range(3):
        failures.report(FULL)
    failures.reset()
    failures.report(FULL)
    said = [record for record in caplog_of_all.records if record.levelno == logging.ERROR]
    line = "eu: a sample failed; trying again: [Errno 28] No space left on device: '/tables/rebalances'"
    assert [record.getMessage() for record in said] == [line] * 2
    assert not any(record.exc_info for record in said)


def test_what_nobody_thought_of_comes_with_its_trace_and_a_spark_that_is_gone_is_for_others_to_report(
    caplog_of_all: pytest.LogCaptureFixture,
) -> None:
    """A killed JVM was a screen of Py4J from each thread."""
    failures = FailureLog("eu", "a sample")
    failures.report(ValueError("a bug"))
    failures.report(Py4JNetworkError("Answer from Java side is empty"))
    failures.report(ConnectionRefusedError("[Errno 111] Connection refused"))
    bug, *gone = caplog_of_all.records
    assert bug.exc_info
    assert [record.levelno for record in gone] == [logging.DEBUG] * 2


def test_pages_that_py4j_logs_as_the_root_logger_are_left_out() -> None:
    def record(name: str, path: str) -> logging.LogRecord:
        return logging.LogRecord(name, logging.ERROR, path, 1, "Exception while sending command.", None, None)

    assert not _is_not_of_py4j(record("root", "/venv/py4j/java_gateway.py"))
    assert _is_not_of_py4j(record("root", "/venv/ours.py"))
    assert _is_not_of_py4j(record("streaming.run", "/py4j/streaming/run.py"))


def test_a_batch_keeps_what_it_failed_with_and_tells_spark_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark makes a page of it that ended in "Traceback (most recent call last):".

    And it searches the page by an expression that overflowed the stack: a stop in mid-batch printed a thousand lines.
    """
    sink = object.__new__(BatchSink)

    def fail(*_: object) -> None:
        raise FULL

    monkeypatch.setattr(sink, "_apply", fail)
    with pytest.raises(BatchFailedError, match=r"No space left on device") as reported:
        sink(None, 7)  # type: ignore[arg-type]
    assert reported.value.__suppress_context__
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
def test_a_disk_that_takes_nothing_is_seen_before_an_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, disk: object
) -> None:
    """delta-rs panics on a full disk: a page of Rust on standard error, which nobody can catch."""
    tables = DeltaTables(str(tmp_path))
    tables.open_all()
    rows = pa.table({"cluster": ["a"], "offsets_topic_offset": [1]})
    with monkeypatch.context() as patch:
        patch.setattr(folder_module.os, "statvfs", lambda _: disk)
        with pytest.raises(OSError, match=r"rebalances") as refused:
            tables.append(REBALANCES, rows)
    assert refused.value.errno == number


class Stands:
    """A checkpoint and tables of a run whose query failed."""

    def __init__(self, folder: Path) -> None:
        self.checkpoint = unpack_checkpoint(folder)
        self.files = LocalFiles(self.checkpoint)
        self.last_batch = 21
        self.root = str(folder / "tables")

    def check(self) -> None:
        """Ask whether the query may be started again."""
        tables = SimpleNamespace(root=self.root, last_batch=lambda: self.last_batch)
        check_restart_helps(None, self.files, tables)  # type: ignore[arg-type]


@pytest.fixture
def stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stands:
    monkeypatch.setattr(restart_check_module, "is_running", lambda _: True)
    return Stands(tmp_path)


def test_a_query_on_whole_files_is_started_again(stands: Stands) -> None:
    stands.check()


@pytest.mark.parametrize(
    ("happens", "error", "exit_code", "why"),
    [
        (shutil.rmtree, CheckpointRemovedError, MAY_PASS, "the next start creates a new one"),
        (lambda at: shutil.rmtree(at / "query"), CheckpointDamagedError, STAYS, "it would begin at batch 0 again"),
        (lambda at: remove(at / "monitor.json"), CheckpointDamagedError, STAYS, "nobody knows whose it is"),
        (lambda at: truncate(at / "query/commits/20"), CheckpointDamagedError, STAYS, "no try will heal it"),
    ],
)
def test_a_query_on_damaged_files_ends_the_run(
    stands: Stands, happens: Callable[[Path], None], error: type[RemedyError], exit_code: int, why: str
) -> None:
    """A checkpoint that was removed was retried for ever, although a restart heals it."""
    happens(stands.checkpoint)
    with pytest.raises(error) as ended:
        stands.check()
    assert ended.value.exit_code == exit_code, why
    assert str(stands.checkpoint) in str(ended.value)
    assert len(str(ended.value).splitlines()) == 1


def test_a_checkpoint_older_than_the_tables_ends_the_run(stands: Stands) -> None:
    """Restored from a backup, it would repeat numbers of batches, which the tables leave out: rows would be lost."""
    stands.last_batch = 22
    with pytest.raises(
        CheckpointDamagedError, match="older than the tables: it ends at batch 21, and the tables have batch 22"
    ):
        stands.check()


def test_a_spark_that_is_gone_is_one_line(stands: Stands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart_check_module, "is_running", lambda _: False)
    with pytest.raises(SparkEndedError) as ended:
        stands.check()
    assert ended.value.exit_code == MAY_PASS
    assert len(str(ended.value).splitlines()) == 1
