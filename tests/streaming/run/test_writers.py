"""One writer a cluster: two checkpoints over the same tables wrote every row twice, without a word."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from streaming.run import writers
from streaming.run.writers import SecondWriterError, Writer, WriterClaim, gives_way
from streaming.spark.files import Files


class LocalFiles(Files):
    """The same files without Hadoop's client, for which a JVM would have to run."""

    def __init__(self, root: Path) -> None:
        self.folder, self._root = root, str(root)

    def read(self, name: str) -> bytes | None:
        """Read it, or None."""
        path = self.folder / name
        return path.read_bytes() if path.exists() else None

    def write(self, name: str, content: bytes) -> None:
        """Write it whole."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(content)

    def delete(self, name: str) -> None:
        """Remove it."""
        (self.folder / name).unlink(missing_ok=True)

    def names(self, folder: str) -> list[str]:
        """List a folder."""
        return sorted(path.name for path in (self.folder / folder).glob("*"))


class Broken(LocalFiles):
    """Storage that can neither be read nor written."""

    def read(self, name: str) -> bytes | None:
        """Refuse."""
        raise PermissionError(13, "Permission denied", name)

    def write(self, name: str, content: bytes) -> None:  # noqa: ARG002 - as the real one
        """Refuse."""
        raise PermissionError(13, "Permission denied", name)


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    return LocalFiles(tmp_path)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "WATCH_SECONDS", 0.05)
    monkeypatch.setattr(writers, "_CHECK_SECONDS", 0.01)


def claim(files: Files, checkpoint: str, cluster: str = "c", began_ms: int = 1) -> WriterClaim:
    """Make a claim that is not taken yet."""
    return WriterClaim(lambda: files, cluster, checkpoint, lambda: began_ms, threading.Event())


def records(files: LocalFiles) -> dict[str, Writer]:
    """Return the records that are there, by checkpoint."""
    stored = [
        msgspec.json.decode(path.read_bytes(), type=Writer) for path in (files.folder / "_writers").glob("*.json")
    ]
    return {record.checkpoint: record for record in stored}


def change(files: LocalFiles, checkpoint: str, edit: Callable[[Writer], Writer]) -> None:
    """Change a record as another machine would."""
    for path in (files.folder / "_writers").glob("*.json"):
        record = msgspec.json.decode(path.read_bytes(), type=Writer)
        if record.checkpoint == checkpoint:
            path.write_bytes(msgspec.json.encode(edit(record)))


def elsewhere(record: Writer) -> Writer:
    """Return the same writer on another machine, whose processes nobody here can look at."""
    return msgspec.structs.replace(record, host="other", machine="another boot pid:[1]")


def test_a_second_checkpoint_of_a_cluster_is_refused_while_the_first_one_writes(files: LocalFiles) -> None:
    """86 generations and 61 rebalances were doubled in 25 s. The line names process, host, checkpoint and remedy."""
    with claim(files, "/first"):
        with pytest.raises(SecondWriterError) as refused, claim(files, "/second"):
            pass
        assert refused.value.exit_code == 78
        said = str(refused.value)
        assert "\n" not in said
        for named in (
            "_writers/",
            "process ",
            " on ",
            "/first",
            "'c'",
            "stop one of the two monitors",
            "a different paths.tables",
        ):
            assert named in said
        assert list(records(files)) == ["/first"], "the one that was refused leaves no record"


def test_other_clusters_and_the_same_checkpoint_are_no_second_writer(files: LocalFiles) -> None:
    with claim(files, "/first"), claim(files, "/of-b", cluster="b"):
        assert len(records(files)) == 2
    with claim(files, "/first"):
        pass
    assert records(files) == {}, "who stops lets go"


def test_a_killed_writer_on_this_machine_blocks_nobody(files: LocalFiles) -> None:
    """`kill -9`, then `rebuild` in another folder: the record stays, its process does not."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    claim(files, "/first").__enter__()
    change(files, "/first", lambda record: msgspec.structs.replace(record, pid=dead.pid))
    with claim(files, "/second"):
        assert list(records(files)) == ["/second"]


def test_a_process_that_got_the_killed_ones_number_is_not_taken_for_it(files: LocalFiles) -> None:
    claim(files, "/first").__enter__()
    change(files, "/first", lambda record: msgspec.structs.replace(record, process_started_seconds=1.0))
    with claim(files, "/second"):
        assert list(records(files)) == ["/second"]


def test_a_writer_elsewhere_that_renews_its_record_is_alive_and_one_that_does_not_is_dead(
    files: LocalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No clock of two machines is compared: what counts is whether the record changes while we look."""
    monkeypatch.setattr(writers, "WATCH_SECONDS", 5.0)
    claim(files, "/first").__enter__()
    change(files, "/first", elsewhere)
    over = threading.Event()

    def renew() -> None:
        while not over.wait(0.02):
            change(files, "/first", lambda one: msgspec.structs.replace(one, renewals=one.renewals + 1))

    renewing = threading.Thread(target=renew)
    renewing.start()
    with pytest.raises(SecondWriterError, match="on other writes with checkpoint /first"), claim(files, "/second"):
        pass
    over.set()
    renewing.join()
    monkeypatch.setattr(writers, "WATCH_SECONDS", 0.05)
    with claim(files, "/second"):
        assert list(records(files)) == ["/second"], "a crashed writer blocks nobody for ever"


def test_a_writer_that_appears_while_both_run_is_noticed_by_one_of_them(files: LocalFiles) -> None:
    """The storage was away when the second one started, or it was stopped for longer than anybody waits."""
    first, second = claim(files, "/first", began_ms=1), claim(files, "/second", began_ms=2)
    first.__enter__()
    hidden = {path: path.read_bytes() for path in (files.folder / "_writers").iterdir()}
    for path in hidden:
        path.unlink()
    second.__enter__()
    for path, content in hidden.items():
        path.write_bytes(content)
    first.renew()
    with pytest.raises(SecondWriterError, match="/first"):
        second.renew()


def test_a_monitor_that_lost_its_checkpoint_to_a_later_run_stops(files: LocalFiles) -> None:
    """On remote storage no lock keeps a second machine from the same checkpoint: the later run has it."""
    first = claim(files, "/shared")
    first.__enter__()
    with claim(files, "/shared"):
        with pytest.raises(SecondWriterError, match="took over checkpoint /shared"):
            first.renew()
        first.__exit__(None, None, None)
        assert list(records(files)) == ["/shared"], "the record is the later run's"


def test_storage_that_fails_stops_nobody_and_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "RENEW_SECONDS", 0.01)
    caplog.set_level(logging.WARNING)
    stop = threading.Event()
    with claim(Broken(tmp_path), "/first") as held:
        keeping = threading.Thread(target=held.keep, args=(stop,))
        keeping.start()
        stop.wait(0.1)
        stop.set()
        keeping.join()
        held.check()
    assert len(caplog.messages) == 1
    assert "cannot check for a second writer" in caplog.messages[0]


def test_a_record_that_is_no_record_stops_nobody(files: LocalFiles) -> None:
    claim(files, "/first").__enter__()
    for path in (files.folder / "_writers").glob("*.json"):
        path.write_bytes(b'{"run_id": ')
    with claim(files, "/second"):
        pass


def test_a_refusal_while_running_reaches_the_one_who_asks(files: LocalFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "RENEW_SECONDS", 0.01)
    first = claim(files, "/shared")
    first.__enter__()
    first.check()
    with claim(files, "/shared"):
        first.keep(threading.Event())
        with pytest.raises(SecondWriterError):
            first.check()


@pytest.mark.parametrize(
    ("mine", "other", "why"),
    [
        ((False, 1, "a"), (True, 2, "b"), "who starts gives way to one that writes, whatever the clocks say"),
        ((True, 2, "b"), (True, 1, "a"), "of two that write the later one"),
        ((False, 2, "b"), (False, 1, "a"), "of two that start the later one"),
        ((False, 1, "b"), (False, 1, "a"), "at the same moment the larger run id"),
    ],
)
def test_of_two_writers_exactly_one_gives_way(
    mine: tuple[bool, int, str], other: tuple[bool, int, str], why: str
) -> None:
    one, two = (
        Writer(run_id, "c", "/p", "host", "", 1, 0.0, began_ms, is_writing=is_writing)
        for is_writing, began_ms, run_id in (mine, other)
    )
    assert gives_way(one, two), why
    assert not gives_way(two, one), why


def test_a_record_holds_no_password_of_a_checkpoint(files: LocalFiles, tmp_path: Path) -> None:
    """It lies beside the tables, and the other monitor does not know this password, so that its log would show it."""
    with claim(files, "s3a://AKIA:ab/cd@bucket/checkpoint"):
        (record,) = (tmp_path / writers.FOLDER).glob("*.json")
        assert "bucket/checkpoint" in record.read_text()
        assert "ab/cd" not in record.read_text()
        with pytest.raises(SecondWriterError) as refused, claim(files, "/second", began_ms=2):
            pass
    assert "ab/cd" not in str(refused.value)
