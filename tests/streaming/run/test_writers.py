"""Tests that each cluster has one writer. Two checkpoints on the same tables wrote every row twice without an error."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest

from streaming.run import writers
from streaming.run.writers import SecondWriterError, Writer, WriterClaim, gives_way
from streaming.spark.files import Files


class LocalFiles(Files):
    """Files on the local disk. Hadoop's client would need a JVM."""

    def __init__(self, root: Path) -> None:
        self.folder, self._root = root, str(root)

    def read(self, name: str) -> bytes | None:
        """Return the content of the file, or None if the file does not exist."""
        path = self.folder / name
        return path.read_bytes() if path.exists() else None

    def write(self, name: str, content: bytes) -> None:
        """Write the file."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(content)

    def delete(self, name: str) -> None:
        """Remove the file."""
        (self.folder / name).unlink(missing_ok=True)

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder."""
        return sorted(path.name for path in (self.folder / folder).glob("*"))


class Broken(LocalFiles):
    """Storage that cannot be read or written."""

    def read(self, name: str) -> bytes | None:
        """Raise PermissionError."""
        raise PermissionError(13, "Permission denied", name)

    def write(self, name: str, content: bytes) -> None:  # noqa: ARG002 - as the real one
        """Raise PermissionError."""
        raise PermissionError(13, "Permission denied", name)


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    return LocalFiles(tmp_path)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "WATCH_SECONDS", 0.05)
    monkeypatch.setattr(writers, "_CHECK_SECONDS", 0.01)


def claim(files: Files, checkpoint: str, cluster: str = "c", began_ms: int = 1) -> WriterClaim:
    """Create a claim without entering it."""
    return WriterClaim(lambda: files, cluster, checkpoint, lambda: began_ms, threading.Event())


def claim_for_repair(files: Files, began_ms: int = 1) -> WriterClaim:
    """Create the claim of a repair without entering it."""
    return WriterClaim(lambda: files, "c", "/repair", lambda: began_ms, threading.Event(), is_repair=True)


def records(files: LocalFiles) -> dict[str, Writer]:
    """Return the stored writer records by checkpoint."""
    stored = [
        msgspec.json.decode(path.read_bytes(), type=Writer) for path in (files.folder / "_writers").glob("*.json")
    ]
    return {record.checkpoint: record for record in stored}


def change(files: LocalFiles, checkpoint: str, edit: Callable[[Writer], Writer]) -> None:
    """Change a record as a different machine would."""
    for path in (files.folder / "_writers").glob("*.json"):
        record = msgspec.json.decode(path.read_bytes(), type=Writer)
        if record.checkpoint == checkpoint:
            path.write_bytes(msgspec.json.encode(edit(record)))


def on_other_machine(record: Writer) -> Writer:
    """Return a copy of the record for a different machine. This machine cannot see the processes of that machine."""
    return msgspec.structs.replace(record, host="other", machine="another boot pid:[1]")


@pytest.mark.parametrize("cluster", ["c", "two"])
def test_a_repair_is_refused_while_a_monitor_writes_rows_of_any_cluster(files: LocalFiles, cluster: str) -> None:
    """Rule 7. A repair moved log entries of a table, and the running monitor failed."""
    with claim(files, "/running", cluster, began_ms=2):
        with pytest.raises(SecondWriterError, match=r"/running for cluster .*: stop this monitor, then") as refused:
            claim_for_repair(files).__enter__()
        assert "every row twice" not in str(refused.value)
        assert [*records(files)] == ["/running"]
    with claim_for_repair(files):
        pass


def test_a_second_checkpoint_of_a_cluster_is_refused_while_the_first_one_writes(files: LocalFiles) -> None:
    """Two writers doubled 86 generations and 61 rebalances in 25 s.

    The error names the process, the host, the checkpoint and the remedy.
    """
    with claim(files, "/first"):
        with pytest.raises(SecondWriterError) as refused, claim(files, "/second"):
            pass
        assert refused.value.exit_code == 78
        message = str(refused.value)
        assert "\n" not in message
        for named in (
            "_writers/",
            "process ",
            " on ",
            "/first",
            "'c'",
            "stop one of the two monitors",
            "a different paths.tables",
        ):
            assert named in message
        assert list(records(files)) == ["/first"], "the refused writer leaves no record"


def test_the_same_local_path_on_two_hosts_is_two_checkpoints(
    files: LocalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copied configuration: both hosts had a local checkpoint at the same path, and wrote into the same tables.

    The second monitor took over the record, so the first one stopped. When the first one was started again, it took
    over the record in turn, and both had stopped in the end.
    """
    monkeypatch.setattr(writers, "WATCH_SECONDS", 5.0)
    with claim(files, "/var/lib/checkpoint") as first:
        change(files, "/var/lib/checkpoint", on_other_machine)
        stopped = threading.Event()
        threading.Thread(target=_renew_until, args=(files, "/var/lib/checkpoint", stopped), daemon=True).start()
        monkeypatch.setattr(writers.socket, "gethostname", lambda: "second-host")
        with pytest.raises(SecondWriterError, match="on other writes with checkpoint"):
            claim(files, "/var/lib/checkpoint", began_ms=2).__enter__()
        stopped.set()
        first.check()


def _renew_until(files: LocalFiles, checkpoint: str, stopped: threading.Event) -> None:
    while not stopped.wait(0.02):
        change(files, checkpoint, lambda one: msgspec.structs.replace(one, renewals=one.renewals + 1))


def test_a_cluster_with_slow_storage_does_not_block_another_cluster(files: LocalFiles) -> None:
    """In Python 3.10 and 3.11, all objects of a class share the lock of a `cached_property`."""
    is_opening, may_open, is_stored = threading.Event(), threading.Event(), threading.Event()

    def open_slowly() -> Files:
        is_opening.set()
        may_open.wait(20)
        return files

    def store() -> None:
        with claim(files, "/fast", cluster="fast"):
            is_stored.set()

    slow = WriterClaim(open_slowly, "slow", "/slow", lambda: 1, threading.Event())
    threads = [threading.Thread(target=slow.check), threading.Thread(target=store)]
    threads[0].start()
    assert is_opening.wait(5)
    threads[1].start()
    is_independent = is_stored.wait(5)
    may_open.set()
    for thread in threads:
        thread.join()
    assert is_independent


def test_other_clusters_and_the_same_checkpoint_are_no_second_writer(files: LocalFiles) -> None:
    with claim(files, "/first"), claim(files, "/of-b", cluster="b"):
        assert len(records(files)) == 2
    with claim(files, "/first"):
        pass
    assert records(files) == {}, "a writer that stops removes its record"


def test_a_killed_writer_on_this_machine_blocks_no_other_writer(files: LocalFiles) -> None:
    """After `kill -9` and a `rebuild` in a different folder, the record remains, but its process is gone."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    claim(files, "/first").__enter__()
    change(files, "/first", lambda record: msgspec.structs.replace(record, pid=dead.pid))
    with claim(files, "/second"):
        assert list(records(files)) == ["/second"]


def test_a_killed_writer_is_dead_although_its_parent_has_not_asked_for_its_exit_code(files: LocalFiles) -> None:
    """In a container, the first process may never ask. Then each restart after `kill -9` was refused."""
    zombie = subprocess.Popen([sys.executable, "-c", ""])
    stat = Path(f"/proc/{zombie.pid}/stat")
    while (fields := stat.read_bytes().split())[2] != b"Z":
        time.sleep(0.01)
    claim(files, "/first").__enter__()
    ticks = int(fields[21])
    change(files, "/first", lambda record: msgspec.structs.replace(record, pid=zombie.pid, process_start_ticks=ticks))
    with claim(files, "/second"):
        assert list(records(files)) == ["/second"]
    zombie.wait()


def test_the_records_of_many_killed_writers_do_not_remain(files: LocalFiles) -> None:
    """A monitor that is killed every day, and gets a new checkpoint each time, must not fill the folder."""
    for number in range(30):
        claim(files, f"/{number}").__enter__()
        change(files, f"/{number}", lambda record: msgspec.structs.replace(record, process_start_ticks=1))
    assert len(records(files)) == 1
    with claim(files, "/last"):
        assert list(records(files)) == ["/last"]
    assert records(files) == {}


def test_a_new_process_with_the_pid_of_a_killed_writer_is_not_the_writer(files: LocalFiles) -> None:
    claim(files, "/first").__enter__()
    change(files, "/first", lambda record: msgspec.structs.replace(record, process_start_ticks=1))
    with claim(files, "/second"):
        assert list(records(files)) == ["/second"]


def test_a_step_of_the_clock_makes_no_running_writer_look_dead(
    files: LocalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start time of a process from psutil depends on the clock of the machine.

    After a step of one second, a second monitor removed the record of the first monitor. Then both monitors wrote.
    """
    with claim(files, "/first"):
        before = psutil.Process().create_time()
        monkeypatch.setattr(psutil.Process, "create_time", lambda _: before + 2)
        with pytest.raises(SecondWriterError, match="/first"), claim(files, "/second", began_ms=2):
            pass


def test_a_record_of_an_earlier_version_is_alive_only_if_it_is_renewed(files: LocalFiles) -> None:
    """Earlier versions stored the start time of the process by the clock, which proves nothing after a clock step."""
    with claim(files, "/first"):
        for path in (files.folder / "_writers").glob("*.json"):
            record = msgspec.json.decode(path.read_bytes())
            del record["process_start_ticks"]
            path.write_bytes(msgspec.json.encode({**record, "process_started_seconds": 1_700_000_000.5}))
        with claim(files, "/second"):
            assert list(records(files)) == ["/second"]


def test_a_writer_on_another_machine_is_alive_only_if_it_renews_its_record(
    files: LocalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clocks of the two machines are not compared. Only a change of the record during the check counts."""
    monkeypatch.setattr(writers, "WATCH_SECONDS", 5.0)
    claim(files, "/first").__enter__()
    change(files, "/first", on_other_machine)
    over = threading.Event()
    renewing = threading.Thread(target=_renew_until, args=(files, "/first", over))
    renewing.start()
    with pytest.raises(SecondWriterError, match="on other writes with checkpoint /first"), claim(files, "/second"):
        pass
    over.set()
    renewing.join()
    monkeypatch.setattr(writers, "WATCH_SECONDS", 0.05)
    with claim(files, "/second"):
        assert list(records(files)) == ["/second"], "a crashed writer does not block others for ever"


def test_of_two_running_writers_one_stops_when_it_sees_the_other(files: LocalFiles) -> None:
    """The storage was unavailable when the second writer started, or one writer paused for longer than the check."""
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


def test_a_monitor_stops_if_a_later_run_takes_over_its_checkpoint(
    files: LocalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On remote storage no lock protects the checkpoint from a second machine. The later run keeps it."""
    first = claim(files, "s3a://bucket/shared")
    first.__enter__()
    monkeypatch.setattr(writers.socket, "gethostname", lambda: "second-host")
    with claim(files, "s3a://bucket/shared"):
        with pytest.raises(SecondWriterError, match="took over checkpoint s3a://bucket/shared"):
            first.renew()
        first.__exit__(None, None, None)
        assert list(records(files)) == ["s3a://bucket/shared"], "the record of the later run stays"


def test_a_writer_that_paused_stops_before_its_next_append(files: LocalFiles) -> None:
    """A machine was suspended for more than 40 s. A second monitor removed its record and wrote.

    The first monitor treated the missing record as normal. Both wrote until one of them stopped at a renewal.
    """
    first = claim(files, "/first")
    first.__enter__()
    first.check()
    change(files, "/first", on_other_machine)
    with claim(files, "/second", began_ms=2) as second:
        with pytest.raises(SecondWriterError, match="the record of this monitor is missing") as stopped:
            first.check()
        assert stopped.value.exit_code == 78
        assert first.refusal is not None, "the query ends, too"
        second.check()
        second.renew()
        first.__exit__(None, None, None)
        assert list(records(files)) == ["/second"]


def test_a_monitor_that_paused_during_its_start_does_not_begin_to_write(
    files: LocalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = claim(files, "/first")
    others: list[WriterClaim] = []

    def pause(_: WriterClaim) -> None:
        monkeypatch.undo()
        change(files, "/first", on_other_machine)
        others.append(claim(files, "/second", began_ms=2).__enter__())

    monkeypatch.setattr(writers, "WATCH_SECONDS", 0.05)
    monkeypatch.setattr(WriterClaim, "_await_others", pause)
    with pytest.raises(SecondWriterError, match="is missing"), first:
        pass
    assert list(records(files)) == ["/second"]


def test_a_record_that_is_missing_because_its_own_write_failed_stops_no_writer(files: LocalFiles) -> None:
    """Some storages replace a file in two steps. If the second step fails, the file is missing."""
    with claim(files, "/first") as first:
        path = next((files.folder / "_writers").glob("*.json"))
        write, files.write = files.write, _delete_and_fail(path)  # type: ignore[method-assign]
        with pytest.raises(OSError, match="disk"):
            first.renew()
        files.write = write  # type: ignore[method-assign]
        first.check()
        first.renew()
        assert list(records(files)) == ["/first"]


def _delete_and_fail(path: Path) -> Callable[[str, bytes], None]:
    def write(name: str, content: bytes) -> None:  # noqa: ARG001 - as the real one
        path.unlink()
        raise OSError("disk")

    return write


def test_a_storage_failure_stops_no_writer_and_is_logged_once(
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


def test_an_unreadable_record_stops_no_writer(files: LocalFiles) -> None:
    claim(files, "/first").__enter__()
    for path in (files.folder / "_writers").glob("*.json"):
        path.write_bytes(b'{"run_id": ')
    with claim(files, "/second"):
        pass


def test_a_refusal_while_running_is_raised_by_check(files: LocalFiles, monkeypatch: pytest.MonkeyPatch) -> None:
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
        ((False, 1, "a"), (True, 2, "b"), "a starting writer gives way to a running one, whatever their times"),
        ((True, 2, "b"), (True, 1, "a"), "of two running writers, the later one gives way"),
        ((False, 2, "b"), (False, 1, "a"), "of two starting writers, the later one gives way"),
        ((False, 1, "b"), (False, 1, "a"), "with equal times, the larger run id gives way"),
    ],
)
def test_of_two_writers_exactly_one_gives_way(
    mine: tuple[bool, int, str], other: tuple[bool, int, str], why: str
) -> None:
    one, two = (
        Writer(run_id, "c", "/p", "host", "", 1, began_ms, is_writing=is_writing)
        for is_writing, began_ms, run_id in (mine, other)
    )
    assert gives_way(one, two), why
    assert not gives_way(two, one), why


def test_a_record_contains_no_password_of_the_checkpoints_address(files: LocalFiles, tmp_path: Path) -> None:
    """The record is stored next to the tables. A different monitor would not redact this password in its log."""
    with claim(files, "s3a://AKIA:ab/cd@bucket/checkpoint"):
        (record,) = (tmp_path / writers.FOLDER).glob("*.json")
        assert "bucket/checkpoint" in record.read_text()
        assert "ab/cd" not in record.read_text()
        with pytest.raises(SecondWriterError) as refused, claim(files, "/second", began_ms=2):
            pass
    assert "ab/cd" not in str(refused.value)
