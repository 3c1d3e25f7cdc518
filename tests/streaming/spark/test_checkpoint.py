"""Tests of the checkpoint folder: its identity, its lock and the end positions of its batches, without Spark."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from streaming.spark import checkpoint as checkpoint_module
from streaming.spark.checkpoint import (
    CHECKPOINT_VERSION,
    CheckpointDamagedError,
    CheckpointError,
    CheckpointLock,
    Identity,
    batch_end_positions,
    check_identity,
    last_committed_batch,
    read_identity,
    write_identity,
)
from streaming.spark.files import Files


class LocalFiles(Files):
    """Files on the local disk. Hadoop's client would need a JVM."""

    def __init__(self, root: Path) -> None:
        self.folder = root

    def uri(self, name: str) -> str:
        """Return the full path."""
        return f"{self.folder}/{name}"

    def read(self, name: str) -> bytes | None:
        """Return the content of the file, or None if the file does not exist."""
        path = self.folder / name
        return path.read_bytes() if path.exists() else None

    def write(self, name: str, content: bytes) -> None:
        """Write the file."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(content)

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder."""
        path = self.folder / folder
        return sorted(entry.name for entry in path.iterdir()) if path.exists() else []


def new_identity(cluster: str, shuffle_partitions: int, **more: Any) -> Identity:  # noqa: ANN401 - any other field
    """Return the identity of a new checkpoint."""
    return Identity(CHECKPOINT_VERSION, uuid.uuid4().hex, cluster, shuffle_partitions, **more)


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    return LocalFiles(tmp_path)


def test_an_identity_is_read_as_it_was_written(files: LocalFiles) -> None:
    assert read_identity(files) is None
    identity = new_identity("prod", 2)
    write_identity(files, identity)
    assert read_identity(files) == identity


@pytest.mark.parametrize(
    ("stored", "problem", "why"),
    [
        (b'{"version": 3}', "has version 3", "a newer version, whatever the other content"),
        (b'{"version": 1, "checkpoint_id": "x"}', "has version 1", "an older version"),
        (b"{}", r"is damaged \(monitor.json is not valid\)", "no version"),
        (b"[]", r"is damaged \(monitor.json is not valid\)", "not a JSON object"),
        (b"", r"is damaged \(monitor.json is empty\)", "an empty file"),
        (b"\xff", r"is damaged \(monitor.json is not valid\)", "not UTF-8"),
        (b'{"version": 2}', r"is damaged \(monitor.json", "the right version without other fields"),
        (b'{"version": 2, "checkpoint_id": 5, "cluster": "c", "shuffle_partitions": 2}', "is damaged", "a wrong type"),
    ],
)
def test_an_unusable_checkpoint_is_refused_with_its_name_and_the_remedy(
    files: LocalFiles, stored: bytes, problem: str, why: str
) -> None:
    files.write("monitor.json", stored)
    with pytest.raises(
        CheckpointError, match=rf"^checkpoint {files.folder} {problem}.*: run `rebalance-monitor rebuild`"
    ):
        read_identity(files)
    assert CHECKPOINT_VERSION == 2, why


@pytest.mark.parametrize(
    ("cluster", "shuffle_partitions", "source", "refused"),
    [
        ("prod", 2, "offsets-topic", None),
        ("test", 2, "offsets-topic", "kafka.cluster = 'prod', not 'test'"),
        ("prod", 4, "offsets-topic", "shuffle_partitions = 2, not 4"),
        ("prod", 2, "admin-api", "source.kind = 'offsets-topic', not 'admin-api'"),
    ],
)
def test_what_a_checkpoint_is_bound_to_cannot_change(
    cluster: str, shuffle_partitions: int, source: str, refused: str | None
) -> None:
    """A checkpoint without a source is from a version that only read the log."""
    identity = Identity(CHECKPOINT_VERSION, "id", "prod", 2)
    if refused is None:
        check_identity(identity, cluster, shuffle_partitions, "/c", source)
    else:
        with pytest.raises(CheckpointError, match=f"/c was created with .*{refused}: change the setting back"):
            check_identity(identity, cluster, shuffle_partitions, "/c", source)


OFFSETS_FILE = b"""v1
{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{"spark.sql.shuffle.partitions":"2"}}
{"__consumer_offsets":{"0":12,"10":7}}
{"logOffset":3}
"""


@pytest.mark.parametrize(
    ("stored", "positions", "why"),
    [
        (OFFSETS_FILE, {0: 12, 10: 7}, "as Spark writes it: metadata, then one line per source"),
        (OFFSETS_FILE.replace(b'{"logOffset":3}', b"-"), {0: 12, 10: 7}, "the second source has no offset yet"),
        (b'v1\n{}\n-\n{"logOffset":3}\n', {}, "the first source has no offset yet"),
        (None, {}, "the batch does not exist"),
    ],
)
def test_positions_after_a_batch_are_those_in_sparks_offset_file(
    files: LocalFiles, stored: bytes | None, positions: dict[int, int], why: str
) -> None:
    if stored is not None:
        files.write("query/offsets/7", stored)
    assert batch_end_positions(files, 7) == positions, why


@pytest.mark.parametrize("stored", [OFFSETS_FILE[:-22], b"v1\n{\xff}\n", b'v1\n{"__consumer_offsets": {"a": 1}}\n'])
def test_a_damaged_offset_file_is_one_line_with_the_remedy(files: LocalFiles, stored: bytes) -> None:
    """On remote storage, no check reads this file before the start, so the start ended in a traceback."""
    files.write("query/offsets/7", stored)
    with pytest.raises(
        CheckpointDamagedError, match=r"\(query/offsets/7 is not JSON\): run `rebalance-monitor rebuild`"
    ):
        batch_end_positions(files, 7)


def test_the_last_committed_batch_has_the_highest_number_not_the_last_name(files: LocalFiles) -> None:
    assert last_committed_batch(files) is None
    for name in ("9", "10", ".10.crc", "metadata"):
        files.write(f"query/commits/{name}", b"")
    assert last_committed_batch(files) == 10


HOLD = """
import sys
import uuid
from streaming.spark.checkpoint import CheckpointLock
with CheckpointLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_monitor_on_one_checkpoint_is_refused_and_the_error_names_the_first(tmp_path: Path) -> None:
    """Different spellings of the path name the same folder."""
    checkpoint, link = tmp_path / "checkpoint", tmp_path / "link"
    checkpoint.mkdir()
    link.symlink_to(checkpoint)
    arguments = [sys.executable, "-c", HOLD, str(checkpoint)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        for spelling in (str(checkpoint), f"{checkpoint}/", f"file://{checkpoint}", str(link)):
            with (
                pytest.raises(CheckpointError, match=f"is in use by process {holder.pid}: stop that process, or"),
                CheckpointLock(spelling),
            ):
                pass
        holder.kill()
        holder.wait()
        with CheckpointLock(str(checkpoint)):
            pass


def test_no_other_user_can_hold_the_lock_or_redirect_it(tmp_path: Path) -> None:
    """Linux locks a file also for a reader. So a user who could read the lock file could block every start."""
    lock, target = tmp_path / "a.lock", tmp_path / "target"
    lock.touch(mode=0o644)
    with CheckpointLock(str(tmp_path / "a")):
        assert lock.stat().st_mode & 0o777 == 0o600
    target.write_text("a file of the monitor's account")
    (tmp_path / "b.lock").symlink_to(target)
    with pytest.raises(CheckpointError), CheckpointLock(str(tmp_path / "b")):
        pass
    assert target.read_text() == "a file of the monitor's account"


def test_a_released_lock_can_be_taken_again_and_other_locks_stay(tmp_path: Path) -> None:
    with CheckpointLock(str(tmp_path / "a")), CheckpointLock(str(tmp_path / "b")):
        pass
    with CheckpointLock(str(tmp_path / "a")):
        pass


@pytest.mark.parametrize("end", [" run", ""], ids=["this format", "the format before the command was added"])
def test_a_new_holder_waits_for_the_jvm_of_the_killed_holder(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After `kill -9` of a monitor, its Spark runs for a moment longer and may write to the checkpoint.

    If the JVM hangs, the start takes 20 s longer, and no log line showed the reason. The first start after an upgrade
    did not wait, because the lock file of the previous version has no command.
    """
    checkpoint = str(tmp_path / "checkpoint")
    with CheckpointLock(checkpoint) as lock:
        lock.write_holder(4711)
    lock_file = Path(f"{checkpoint}.lock")
    lock_file.write_text(lock_file.read_text().removesuffix(" run") + end)
    checked_pids: list[int] = []

    def is_java_twice(pid: int) -> bool:
        checked_pids.append(pid)
        return len(checked_pids) < 3

    monkeypatch.setattr(checkpoint_module, "_is_leftover_jvm", is_java_twice)
    with CheckpointLock(checkpoint):
        assert checked_pids == [4711] * 3
    assert f"checkpoint {checkpoint}: waiting at most 20 s until process 4711 ends" in caplog.text
    checked_pids.clear()
    with CheckpointLock(checkpoint):
        assert checked_pids == [], "the lock was released, so there is no process to wait for"


def test_the_lock_waits_only_for_the_jvm_of_an_ended_monitor(tmp_path: Path) -> None:
    """A monitor of several clusters waited for its own JVM, 20 s at each new try to watch one of them."""
    java = tmp_path / "java"
    shutil.copy(str(shutil.which("sleep")), java)
    with subprocess.Popen([str(java), "60"]) as own_jvm, subprocess.Popen(["sleep", "60"]) as not_java:
        assert not checkpoint_module._is_leftover_jvm(own_jvm.pid)
        assert not checkpoint_module._is_leftover_jvm(not_java.pid)
        for child in (own_jvm, not_java):
            child.kill()
    start_orphan = ["sh", "-c", f"{java} 60 >/dev/null 2>&1 & echo $!"]
    orphan = int(subprocess.run(start_orphan, capture_output=True, text=True, check=True).stdout)
    try:
        assert checkpoint_module._is_leftover_jvm(orphan)
    finally:
        os.kill(orphan, signal.SIGKILL)
    assert not checkpoint_module._is_leftover_jvm(2**22 + 1)


def test_the_lock_of_a_remote_checkpoint_is_a_file_on_this_machine() -> None:
    lock_path = checkpoint_module._lock_path("s3a://bucket/checkpoint")
    assert lock_path == checkpoint_module._lock_path("s3a://bucket/checkpoint/")
    assert lock_path != checkpoint_module._lock_path("s3a://bucket/other")
    assert lock_path.name.startswith("rebalance-monitor-")
