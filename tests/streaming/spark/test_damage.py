"""Tests that a damaged checkpoint ends the start with one line that names the file, without Spark.

A damaged cache is dropped instead.
"""

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
from streaming.spark.folder import full_folders
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
    "monitor.json": "the identity of the checkpoint, and the checksums of its origin",
    "origin/rebalances.positions": "without this file, rows would be written twice",
    "origin/seeds": "totals continue from this file",
    "query/offsets/21": "the end offsets of the interrupted batch",
    "query/offsets/20": "the start offsets of the interrupted batch",
    "query/commits/20": "the last committed batch",
    "query/metadata": "Spark's own id of the query",
    "query/sources/1/0": "the external facts that were read",
    "query/state/0/_metadata/metadata": "the format of the state",
    "query/state/0/0/_metadata/schema": "the columns of the state",
    "query/state/0/0/10.zip": "the last snapshot of the state",
    "query/state/0/1/12.changelog": "changes of a batch after the snapshot",
    "query/state/0/1/21.changelog": "changes of the last batch",
}
"""Files that the next start of the sample checkpoint needs, and their purpose."""

FINE_WITHOUT = {
    "query/offsets/21": "the batch was not committed, so it starts again",
    "query/metadata": "Spark creates a new id, and the old one is not used",
    "query/state/0/_metadata/metadata": "Spark writes the file again",
    "query/state/0/0/10.zip": "the changes of all batches exist",
}
"""Files of NEEDED that may be missing, and the reason."""


@pytest.fixture
def checkpoint() -> Iterator[Path]:
    """Unpack the checkpoint outside pytest's folder, because other users cannot enter that folder."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield unpack_checkpoint(Path(folder))


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("with_checksums", [True, False])
@pytest.mark.parametrize("name", NEEDED)
def test_a_damaged_file_that_is_needed_is_refused_with_its_name_and_the_remedy(
    checkpoint: Path, name: str, damage: str, with_checksums: bool
) -> None:
    """Each of these ended in a traceback and exit code 1. So the supervisor restarted the monitor for ever."""
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
def test_a_truncated_checksum_is_refused_with_the_name_of_the_file_and_the_remedy(checkpoint: Path, name: str) -> None:
    """Hadoop fails on a truncated checksum. With a real checkpoint, the query failed and was restarted for ever."""
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


def test_a_snapshot_with_a_block_of_zeros_is_refused_at_each_position(checkpoint: Path) -> None:
    """A disk that loses a sector returns zeros. `zipfile` raised zlib.error, and the start ended in a traceback."""
    path = checkpoint / "query/state/0/0/10.zip"
    content = path.read_bytes()
    forget_checksums(path)
    for at in range(0, len(content), 64):
        path.write_bytes(content[:at] + bytes(len(content[at : at + 512])) + content[at + 512 :])
        with pytest.raises(CheckpointError, match=r"10\.zip"):
            check_files(str(checkpoint))


LOGS = ("offsets", "commits")

LEGAL = {
    "as kill -9 left it": lambda _: None,
    "before the start of the batch": lambda at: remove(at / "query/offsets/21"),
    "between two renames, without checksums": lambda at: [path.unlink() for path in at.rglob(".*.crc")],
    "with a partly written temporary file": lambda at: empty(at / "query/commits/.21.8a7f.tmp"),
    "with a partly written file of the monitor": lambda at: empty(at / "samples/.8a7f.partial"),
    "without the log entries of old batches": lambda at: [
        remove(at / f"query/{log}/3") for log in ("offsets", "commits")
    ],
    "with a damaged file that only old batches need": lambda at: empty(at / "query/state/0/0/3.changelog"),
    "with the state of a batch that is not committed": lambda at: empty(at / "query/state/0/0/22.changelog"),
    "with the snapshot of a batch that is not committed": lambda at: empty(at / "query/state/0/0/22.zip"),
    "before the first batch": lambda at: shutil.rmtree(at / "query"),
    "before the checkpoint existed": shutil.rmtree,
    "created by a version without checksums": lambda at: forget_origin(at / "monitor.json"),
}
"""States of a checkpoint that a killed or an older monitor may leave."""


@pytest.mark.parametrize("left", LEGAL)
def test_the_state_after_a_kill_is_not_damage(checkpoint: Path, left: str) -> None:
    """A monitor that refuses to start after a kill is worse than one that fails on damage."""
    LEGAL[left](checkpoint)
    check_files(str(checkpoint))


@pytest.mark.parametrize(
    ("removed", "message"),
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
def test_a_folder_or_several_files_that_are_gone_are_refused(checkpoint: Path, removed: str, message: str) -> None:
    """Without these files the query would begin again at batch 0. The tables would skip its rows as repeated."""
    for name in removed.split():
        path = checkpoint / name
        shutil.rmtree(path) if path.is_dir() else remove(path)
    with pytest.raises(CheckpointError, match=message) as refused:
        check_files(str(checkpoint))
    assert refused.value.exit_code == STAYS


@pytest.mark.parametrize("damage", [empty, truncate, fill_with_garbage])
def test_damaged_facts_are_dropped_with_one_warning(
    checkpoint: Path, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    """The driver sends a missing fact again. So a damaged fact is no reason to refuse the start."""
    facts = checkpoint / "feedback" / "one.json"
    facts.write_text('{"state_kind": "group", "state_key": "g", "payload": "AAAA"}\n')
    damage(facts)
    with caplog.at_level(logging.WARNING):
        check_files(str(checkpoint))
    assert not facts.exists()
    (line,) = caplog.messages
    assert "feedback/one.json" in line


def test_undamaged_facts_stay(checkpoint: Path, caplog: pytest.LogCaptureFixture) -> None:
    facts = checkpoint / "feedback" / "one.json"
    facts.write_text('{"state_kind": "group", "state_key": "g", "payload": "AAAA"}\n')
    check_files(str(checkpoint))
    assert facts.exists()
    assert not caplog.messages


def test_the_checksums_of_a_half_renamed_feedback_file_are_removed(checkpoint: Path) -> None:
    """Hadoop renames the file first. A kill then left the checksums of the temporary file for ever."""
    left = checkpoint / "feedback" / "..a.json.partial.crc"
    left.write_bytes(b"")
    check_files(str(checkpoint))
    assert not left.exists()


def test_a_checksum_file_without_its_file_is_removed(checkpoint: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Spark cannot write `offsets/21` if `.21.crc` exists. It failed with "Multiple streaming queries" for ever."""
    (checkpoint / "query/offsets/21").unlink()
    check_files(str(checkpoint))
    assert not (checkpoint / "query/offsets/.21.crc").exists()
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("name", [*NEEDED, "query", "query/state/0/1", "feedback", ""])
def test_a_file_without_read_permission_is_refused_with_its_name_and_the_remedy(checkpoint: Path, name: str) -> None:
    """After root restored a folder from a backup, each start ended in a traceback of Java's AccessControlException."""
    message = as_nobody_without(checkpoint, name)
    assert message.startswith(f"CheckpointError: checkpoint {checkpoint} cannot be used ({checkpoint}")
    assert "Permission denied): let the user of the monitor (id" in message
    assert name in message


def as_nobody_without(checkpoint: Path, name: str) -> str:
    def action() -> None:
        (checkpoint / name).chmod(0)
        check_files(str(checkpoint))

    return as_nobody(action, checkpoint.parent)


def test_a_lock_that_cannot_be_taken_is_an_error_with_its_path(checkpoint: Path) -> None:
    """The lock file is in the folder above the checkpoint, and this folder is read-only."""

    def action() -> None:
        checkpoint.parent.chmod(0o555)
        with CheckpointLock(str(checkpoint)):
            pass

    message = as_nobody(action, checkpoint.parent)
    assert message.startswith(f"CheckpointError: checkpoint {checkpoint} cannot be used ({checkpoint}.lock: Permission")


@pytest.mark.parametrize("content", [b"", b"4711", b"\xff\xfe garbage", b"12 -7", b"x" * 5000])
def test_a_lock_file_may_hold_anything(checkpoint: Path, content: bytes) -> None:
    """The content only names a process. The lock itself is in the kernel."""
    checkpoint.with_name("checkpoint.lock").write_bytes(content)
    with CheckpointLock(str(checkpoint)):
        pass


@pytest.mark.parametrize(
    ("flags", "free_bytes", "message"),
    [
        (os.ST_RDONLY, 1 << 30, "Read-only file system): mount its disk as writable, or choose a different"),
        (0, 4096, "No space left on device): make space on its disk, or choose a different"),
    ],
)
def test_a_disk_that_cannot_be_written_is_refused_before_spark_starts(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, flags: int, free_bytes: int, message: str
) -> None:
    """The start ended in a traceback after Spark had started for ten seconds."""
    disk = SimpleNamespace(f_flag=flags, f_bavail=free_bytes // 512, f_frsize=512)
    monkeypatch.setattr(folder_module.os, "statvfs", lambda _: disk)
    for root in (checkpoint, checkpoint / "not" / "there"):
        with pytest.raises(CheckpointError) as refused:
            check_files(str(root))
        assert message in str(refused.value)
        assert refused.value.exit_code == STAYS


def test_only_folders_on_a_full_disk_are_reported_as_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`/-/ready` blamed the brokers while the disk of the tables was full. The folder may not exist yet."""
    folders = {"checkpoint": str(tmp_path / "new" / "checkpoint"), "tables": str(tmp_path / "tables")}
    (tmp_path / "tables").mkdir()
    assert full_folders(folders) == {}

    def statvfs(path: Path) -> SimpleNamespace:
        return SimpleNamespace(f_bavail=0 if path.name == "tables" else 1 << 30, f_frsize=512)

    monkeypatch.setattr(folder_module.os, "statvfs", statvfs)
    assert full_folders(folders) == {"tables": folders["tables"]}


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_text("")
    with pytest.raises(CheckpointError, match=os.strerror(errno.ENOTDIR)):
        check_files(str(tmp_path / "checkpoint"))


def forget_origin(identity: Path) -> None:
    """Remove the checksums from the identity, as versions before the checksums wrote it."""
    stored = json.loads(identity.read_bytes())
    del stored["origin"]
    identity.write_text(json.dumps(stored))


def test_remote_storage_is_not_checked() -> None:
    check_files("s3a://bucket/checkpoint")
