"""A damaged checkpoint ends the start with one line that names the file, or it costs a cache. Without Spark."""

from __future__ import annotations

import binascii
import errno
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from streaming.errors import STAYS
from streaming.spark import folder as folder_module
from streaming.spark.checkpoint import CheckpointError, CheckpointLock, check_files
from tests.streaming.spark.checkpoints import (
    as_nobody,
    empty,
    fill_with_garbage,
    forget_checksums,
    remove,
    truncate,
    unpack_checkpoint,
)

Damage = Callable[[Path], None]

DAMAGES: Mapping[str, Damage] = {
    "emptied": empty,
    "truncated": truncate,
    "garbage": fill_with_garbage,
    "removed": remove,
}

NEEDED = {
    "monitor.json": "whose checkpoint it is, and the checksums of its origin",
    "origin/rebalances.positions": "without it rows would be written twice",
    "origin/seeds": "totals go on from it",
    "query/offsets/21": "where the interrupted batch ends",
    "query/offsets/20": "where the interrupted batch begins",
    "query/commits/20": "the last batch that is done",
    "query/metadata": "Spark's own id of the query",
    "query/sources/1/0": "which facts were read",
    "query/state/0/_metadata/metadata": "the form of the state",
    "query/state/0/0/_metadata/schema": "the columns of the state",
    "query/state/0/0/10.zip": "the last snapshot of the state",
    "query/state/0/1/12.changelog": "what a batch changed after the snapshot",
    "query/state/0/1/21.changelog": "what the last batch changed",
}
"""Files that the next start of the sample needs, each with what for."""

FINE_WITHOUT = {
    "query/offsets/21": "the batch was not done: it begins anew",
    "query/metadata": "Spark makes a new id, and nobody asks for the old one",
    "query/state/0/_metadata/metadata": "Spark writes it again",
    "query/state/0/0/10.zip": "all changes since the first batch are there",
}
"""Of these, files that may be removed, and why."""


@pytest.fixture
def checkpoint() -> Iterator[Path]:
    """Not below pytest's own folder, which nobody else may enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield unpack_checkpoint(Path(folder))


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("with_checksums", [True, False])
@pytest.mark.parametrize("name", NEEDED)
def test_a_damaged_file_that_is_needed_is_refused_by_name_with_the_remedy(
    checkpoint: Path, name: str, damage: str, with_checksums: bool
) -> None:
    """Each of these ended in a traceback and exit code 1, so whatever supervises the monitor started it for ever."""
    DAMAGES[damage](checkpoint / name)
    if not with_checksums:
        forget_checksums(checkpoint / name)
    if damage == "removed" and name in FINE_WITHOUT:
        check_files(str(checkpoint))
        return
    with pytest.raises(CheckpointError, match=rf"^checkpoint {checkpoint}/? ") as refused:
        check_files(str(checkpoint))
    assert "run `rebalance-monitor rebuild`" in str(refused.value), NEEDED[name]
    assert name.partition("/")[0] in str(refused.value) or name == "monitor.json"
    assert len(str(refused.value).splitlines()) == 1
    assert refused.value.exit_code == STAYS


@pytest.mark.parametrize("name", NEEDED)
def test_half_a_checksum_is_refused_by_name_with_the_remedy(checkpoint: Path, name: str) -> None:
    """Hadoop fails on it. Found with a real checkpoint: the query failed and was started again, for ever."""
    path, content = checkpoint / name, (checkpoint / name).read_bytes()
    checksums = path.with_name(f".{path.name}.crc")
    whole = b"crc\0" + (512).to_bytes(4, "big")
    for at in range(0, len(content), 512):
        whole += binascii.crc32(content[at : at + 512]).to_bytes(4, "big")
    checksums.write_bytes(whole)
    check_files(str(checkpoint))
    checksums.write_bytes(whole[:-2])
    with pytest.raises(CheckpointError, match=rf"{name} does not match its checksums in {checksums.name}"):
        check_files(str(checkpoint))


LOGS = ("offsets", "commits")

LEGAL = {
    "as it was left by kill -9": lambda _: None,
    "before the batch began": lambda at: remove(at / "query/offsets/21"),
    "between two renames, so without checksums": lambda at: [path.unlink() for path in at.rglob(".*.crc")],
    "with a temporary file half written": lambda at: empty(at / "query/commits/.21.8a7f.tmp"),
    "with a file of ours half written": lambda at: empty(at / "samples/.8a7f.partial"),
    "without the notes of batches long done": lambda at: [
        remove(at / f"query/{log}/3") for log in ("offsets", "commits")
    ],
    "with damage that only batches long done would notice": lambda at: empty(at / "query/state/0/0/3.changelog"),
    "with a state of a batch that is not done": lambda at: empty(at / "query/state/0/0/22.changelog"),
    "with a snapshot of a batch that is not done": lambda at: empty(at / "query/state/0/0/22.zip"),
    "before the first batch": lambda at: shutil.rmtree(at / "query"),
    "before there was a checkpoint": shutil.rmtree,
    "made by a version without checksums": lambda at: forget_origin(at / "monitor.json"),
}
"""What a monitor that was killed, or an older one, may leave behind."""


@pytest.mark.parametrize("left", LEGAL)
def test_what_a_kill_may_leave_behind_is_no_damage(checkpoint: Path, left: str) -> None:
    """A monitor that refuses to start after a kill is worse than one that fails on damage."""
    LEGAL[left](checkpoint)
    check_files(str(checkpoint))


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("query/offsets", "query/offsets has no batch"),
        ("query/offsets query/commits", "query/offsets has no batch"),
        ("monitor.json", "monitor.json is missing"),
        ("query/commits/19 query/commits/20", "query/commits/20 is missing"),
        ("query/offsets/20 query/offsets/21", "query/offsets/20 is missing"),
        ("query/sources/1", "query/sources/1/0 is missing"),
        ("query/state", "query/state/0/0/_metadata/schema is missing"),
        ("query/state/0/1", "query/state/0/1/1.changelog is missing"),
    ],
)
def test_a_folder_or_several_files_that_are_gone_are_refused(checkpoint: Path, gone: str, said: str) -> None:
    """A query without notes would begin again at batch 0, and the tables would leave out its rows as repeated."""
    for name in gone.split():
        path = checkpoint / name
        shutil.rmtree(path) if path.is_dir() else remove(path)
    with pytest.raises(CheckpointError, match=said) as refused:
        check_files(str(checkpoint))
    assert refused.value.exit_code == STAYS


@pytest.mark.parametrize("damage", [empty, truncate, fill_with_garbage])
def test_damaged_facts_are_dropped_with_one_warning(
    checkpoint: Path, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    """The driver sends again what a group still lacks: no reason to refuse a start."""
    facts = checkpoint / "feedback" / "one.json"
    facts.write_text('{"state_kind": "group", "state_key": "g", "payload": "AAAA"}\n')
    damage(facts)
    with caplog.at_level(logging.WARNING):
        check_files(str(checkpoint))
    assert not facts.exists()
    (line,) = caplog.messages
    assert "feedback/one.json" in line


def test_facts_that_are_whole_stay(checkpoint: Path, caplog: pytest.LogCaptureFixture) -> None:
    facts = checkpoint / "feedback" / "one.json"
    facts.write_text('{"state_kind": "group", "state_key": "g", "payload": "AAAA"}\n')
    check_files(str(checkpoint))
    assert facts.exists()
    assert not caplog.messages


def test_a_checksum_file_without_its_file_is_removed(checkpoint: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Spark cannot write `offsets/21` beside a `.21.crc`: it failed with "Multiple streaming queries" for ever."""
    (checkpoint / "query/offsets/21").unlink()
    check_files(str(checkpoint))
    assert not (checkpoint / "query/offsets/.21.crc").exists()
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("name", [*NEEDED, "query", "query/state/0/1", "feedback", ""])
def test_what_the_monitor_may_not_read_is_refused_by_name_with_the_remedy(checkpoint: Path, name: str) -> None:
    """A folder restored from a backup as root: each start ended in a traceback of Java's AccessControlException."""
    said = as_nobody_without(checkpoint, name)
    assert said.startswith(f"CheckpointError: checkpoint {checkpoint} cannot be used ({checkpoint}")
    assert "Permission denied): let the user of the monitor (id" in said
    assert name in said


def as_nobody_without(checkpoint: Path, name: str) -> str:
    def ask() -> None:
        (checkpoint / name).chmod(0)
        check_files(str(checkpoint))

    return as_nobody(ask, checkpoint.parent)


def test_a_lock_that_cannot_be_taken_is_refused_by_name(checkpoint: Path) -> None:
    """The folder above the checkpoint is read-only: the lock lies there."""

    def ask() -> None:
        checkpoint.parent.chmod(0o555)
        with CheckpointLock(str(checkpoint)):
            pass

    said = as_nobody(ask, checkpoint.parent)
    assert said.startswith(f"CheckpointError: checkpoint {checkpoint} cannot be used ({checkpoint}.lock: Permission")


@pytest.mark.parametrize("content", [b"", b"4711", b"\xff\xfe garbage", b"12 -7", b"x" * 5000])
def test_a_lock_file_may_hold_anything(checkpoint: Path, content: bytes) -> None:
    """Its content only names a process. The lock itself is the kernel's."""
    checkpoint.with_name("checkpoint.lock").write_bytes(content)
    with CheckpointLock(str(checkpoint)):
        pass


@pytest.mark.parametrize(
    ("flags", "free_bytes", "said"),
    [
        (os.ST_RDONLY, 1 << 30, "Read-only file system): mount its disk as writable, or choose a different"),
        (0, 4096, "No space left on device): free space on its disk, or choose a different"),
    ],
)
def test_a_disk_that_takes_nothing_is_refused_before_spark_starts(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, flags: int, free_bytes: int, said: str
) -> None:
    """It ended in a traceback after the ten seconds that Spark takes to start."""
    disk = SimpleNamespace(f_flag=flags, f_bavail=free_bytes // 512, f_frsize=512)
    monkeypatch.setattr(folder_module.os, "statvfs", lambda _: disk)
    for root in (checkpoint, checkpoint / "not" / "there"):
        with pytest.raises(CheckpointError) as refused:
            check_files(str(root))
        assert said in str(refused.value)
        assert refused.value.exit_code == STAYS


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_text("")
    with pytest.raises(CheckpointError, match=os.strerror(errno.ENOTDIR)):
        check_files(str(tmp_path / "checkpoint"))


def forget_origin(identity: Path) -> None:
    """Write the identity as versions before there were checksums did."""
    stored = json.loads(identity.read_bytes())
    del stored["origin"]
    identity.write_text(json.dumps(stored))


def test_storage_of_another_kind_is_left_to_spark() -> None:
    check_files("s3a://bucket/checkpoint")
