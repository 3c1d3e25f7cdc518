"""The checkpoint folder: whose it is, which version made it, and where its batches end.

monitor.json     identity: written last when a checkpoint is made, so that half a checkpoint is none
query/           Spark's own: offsets, commits, state
feedback/     facts on their way back to groups
origin/          what the tables held when the checkpoint was made: positions not to be written again, and seeds
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, TracebackType
from urllib.parse import urlparse

import msgspec
import psutil
from typing_extensions import Self

from streaming.config.settings import OFFSETS_TOPIC_SOURCE
from streaming.errors import MAY_PASS, STAYS, RemedyError, storage_remedy
from streaming.spark.checkpoint_files import (
    IDENTITY,
    QUERY,
    find_damage,
    find_disposable,
    find_query_without_identity,
)
from streaming.spark.files import Files
from streaming.spark.folder import DamagedFile, Folder, LocalFolder, local_folder

CHECKPOINT_VERSION = 2
_LEFTOVER_JVM_SECONDS = 20.0

_log = logging.getLogger(__name__)


class CheckpointError(RemedyError):
    """The checkpoint cannot be used."""

    exit_code = STAYS


class CheckpointInUseError(CheckpointError):
    """Another process on this machine holds it; it may be about to end."""

    exit_code = MAY_PASS


class CheckpointDamagedError(CheckpointError):
    """A file of the checkpoint is missing or damaged."""

    def __init__(self, uri: str, what: object) -> None:
        super().__init__(f"checkpoint {uri} is damaged ({what}): run `rebalance-monitor rebuild`")


class Identity(msgspec.Struct, frozen=True):
    """What a checkpoint is bound to for its life. `origin`: checksums of its files, by name; unknown in older ones."""

    version: int
    checkpoint_id: str
    cluster: str
    shuffle_partitions: int
    source: str = OFFSETS_TOPIC_SOURCE
    origin: dict[str, int] = {}


def new_identity(
    cluster: str,
    shuffle_partitions: int,
    source: str = OFFSETS_TOPIC_SOURCE,
    origin: Mapping[str, int] = MappingProxyType({}),
) -> Identity:
    """Make the identity of a checkpoint that is being made now."""
    return Identity(CHECKPOINT_VERSION, uuid.uuid4().hex, cluster, shuffle_partitions, source, dict(origin))


def read_identity(files: Folder) -> Identity | None:
    """Read the identity; None where no checkpoint was made. Raises CheckpointError for another version's."""
    stored = files.read(IDENTITY)
    if stored is None:
        return None
    uri = files.uri("")
    try:
        version = json.loads(stored)["version"]
    except (ValueError, KeyError, TypeError):
        version = "unreadable"
    if version != CHECKPOINT_VERSION:
        raise CheckpointError(
            f"checkpoint {uri} has version {version}, this monitor writes {CHECKPOINT_VERSION}: "
            "run `rebalance-monitor rebuild`, or the version of the monitor that made it"
        )
    try:
        return msgspec.json.decode(stored, type=Identity)
    except msgspec.DecodeError as damaged:
        raise CheckpointDamagedError(uri, f"{IDENTITY}: {damaged}") from None


def check_files(uri: str) -> None:
    """Check a checkpoint on a local disk as far as its files show. Raises CheckpointError with file and remedy.

    What a start can do without is removed, with a warning. A checkpoint on remote storage is checked as Spark reads it.
    """
    folder = local_folder(uri)
    if folder is None:
        return
    try:
        if refusal := folder.refusal():
            raise CheckpointError(_refused(uri, refusal))
        if damage := find_damaged_file(uri):
            raise CheckpointDamagedError(uri, damage)
        _remove_disposable(folder)
    except OSError as error:
        raise CheckpointError(_refused(uri, error)) from None


def find_damaged_file(uri: str) -> DamagedFile | None:
    """The first missing or damaged file of a checkpoint on a local disk. Raises OSError for an unreadable one."""
    folder = local_folder(uri)
    if folder is None:
        return None
    identity = read_identity(folder)
    if identity is None:
        return find_query_without_identity(folder)
    return find_damage(folder, identity.origin, identity.source, identity.shuffle_partitions)


@contextmanager
def naming_refusals(uri: str) -> Iterator[None]:
    """Turn what the storage of a checkpoint refuses into a CheckpointError with the remedy."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(_refused(uri, error)) from error


def _remove_disposable(folder: LocalFolder) -> None:
    disposable = find_disposable(folder)
    for file in disposable:
        (folder.root / file.name).unlink()
    if disposable:
        _log.warning(
            "removed %d damaged files of %s that are not needed: %s",
            len(disposable),
            folder.root,
            "; ".join(map(str, disposable[:3])),
        )


def _refused(uri: str, error: OSError) -> str:
    return (
        f"checkpoint {uri} cannot be used ({error.filename}: {error.strerror}): {storage_remedy(error)},"
        " or choose another paths.checkpoint"
    )


def write_identity(files: Files, identity: Identity) -> None:
    """Make the checkpoint one."""
    files.write(IDENTITY, msgspec.json.encode(identity))


def check_identity(
    identity: Identity, cluster: str, shuffle_partitions: int, uri: str, source: str = OFFSETS_TOPIC_SOURCE
) -> None:
    """Refuse what a checkpoint cannot change in its life: offsets of a log and numbers of polls have no one order."""
    for name, mine, found in (
        ("source.kind", source, identity.source),
        ("kafka.cluster", cluster, identity.cluster),
        ("spark.shuffle_partitions", shuffle_partitions, identity.shuffle_partitions),
    ):
        if mine != found:
            raise CheckpointError(
                f"checkpoint {uri} was made with {name} = {found!r}, not {mine!r}: "
                "set it back, choose another paths.checkpoint, or run `rebalance-monitor rebuild`"
            )


def batch_end_positions(files: Files, batch_id: int, topic: str) -> dict[int, int]:
    """The position after a batch, per partition: Spark writes it down before the batch runs."""
    stored = files.read(f"{QUERY}/offsets/{batch_id}")
    for line in (stored or b"").decode().splitlines():
        if line.startswith("{") and topic in (parsed := json.loads(line)):
            return {int(partition): int(offset) for partition, offset in parsed[topic].items()}
    return {}


def last_committed_batch(files: Files) -> int | None:
    """The last batch that is wholly done; None before the first."""
    done = [int(name) for name in files.names(f"{QUERY}/commits") if name.isdigit()]
    return max(done, default=None)


def last_begun_batch(files: Folder) -> int:
    """The last batch whose end was written down; -1 before the first."""
    return max((int(name) for name in files.names(f"{QUERY}/offsets") if name.isdigit()), default=-1)


class CheckpointLock:
    """One monitor a checkpoint. A second one on this machine is refused by name.

    The lock dies with this process. Its Spark may live some moments longer, so a new holder waits for that to end.
    For a checkpoint on remote storage it guards against monitors on this machine only.
    """

    def __init__(self, checkpoint: str) -> None:
        self._checkpoint = checkpoint
        self._path = _lock_path(checkpoint)
        self._descriptor = -1

    def __enter__(self) -> Self:
        """Take it. Raises CheckpointInUseError if another process holds it."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise CheckpointError(_refused(self._checkpoint, error)) from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = self._holder()
            os.close(self._descriptor)
            raise CheckpointInUseError(
                f"checkpoint {self._checkpoint} is in use by process {holder[0] if holder else 'unknown'}: "
                "stop it, or choose another paths.checkpoint"
            ) from None
        self._wait_for_leftover_jvm()
        self.write_holder(None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let go."""
        os.close(self._descriptor)

    def write_holder(self, jvm_pid: int | None) -> None:
        """Note who holds it, and the JVM that will have to be waited for should this process be killed."""
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()} {jvm_pid or ''}".encode(), 0)
        except OSError as error:
            error.filename = str(self._path)
            raise CheckpointError(_refused(self._checkpoint, error)) from None

    def _holder(self) -> list[str]:
        """The process that wrote the file last, and its JVM if it had one; nothing if the content is not ours."""
        words = os.pread(self._descriptor, 200, 0).decode(errors="replace").split()
        return words if all(word.isascii() and word.isdigit() for word in words) else []

    def _wait_for_leftover_jvm(self) -> None:
        holder = self._holder()
        if len(holder) == 2:
            deadline = time.monotonic() + _LEFTOVER_JVM_SECONDS
            while _is_java(int(holder[1])) and time.monotonic() < deadline:
                time.sleep(0.2)


def _is_java(pid: int) -> bool:
    try:
        return "java" in psutil.Process(pid).name()
    except psutil.Error:
        return False


def canonical_place(uri: str) -> str:
    """One name for one folder, by whatever way it is named: links are followed."""
    parsed = urlparse(uri)
    return str(Path(parsed.path).resolve()) if parsed.scheme in ("", "file") else uri.rstrip("/")


def _lock_path(checkpoint: str) -> Path:
    """One lock for one folder."""
    place = canonical_place(checkpoint)
    if urlparse(place).scheme == "":
        folder = Path(place)
        return folder.with_name(f"{folder.name}.lock")
    digest = hashlib.sha256(place.encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir(), f"rebalance-monitor-{digest}.lock")
