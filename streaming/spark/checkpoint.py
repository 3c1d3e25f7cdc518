"""The checkpoint folder: its identity, its lock, and the end positions of its batches.

- `monitor.json`: the identity, which is written last. So an incomplete checkpoint has no identity.
- `query/`: Spark's files with offsets, commits and state.
- `feedback/`: external facts for the groups.
- `table_progress.json`: the progress of the writes to the tables.
- `cluster_id`: Kafka's id of the cluster, written at the first start. If the file does not exist, the id is unknown.
- `origin/`: a summary of the tables, written when the checkpoint was created: the positions of the records that have
  rows, and the initial states of the groups.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import msgspec
import psutil
from typing_extensions import Self

from streaming.config.settings import OFFSETS_TOPIC_SOURCE
from streaming.config.types.paths import canonical_location, local_path
from streaming.errors import MAY_PASS, STAYS, RemedyError, storage_remedy
from streaming.events import OFFSETS_TOPIC
from streaming.spark.checkpoint_files import IDENTITY, QUERY, find_damage, find_disposable, find_query_without_identity
from streaming.spark.files import Files
from streaming.spark.folder import DamagedFile, Folder, local_folder
from streaming.temporary_folder import raising_temporary_folder_error

CHECKPOINT_VERSION = 2
"""The version of all files, except the states in `query/` and `origin/seeds`, and the samples.

These have their own versions.
"""

CLUSTER_ID = "cluster_id"
"""The name of the file that stores Kafka's id of the cluster."""

_CLUSTER_ID = re.compile(rb"([!-~]{1,100}\n|[A-Za-z0-9_-]{22})")
"""The content of that file. The line break shows that the file is not truncated: a part of an id looks like an id.

Earlier versions wrote no line break. Without a line break, only an id with the 22 characters of Kafka's ids is
accepted.
"""

_LEFTOVER_JVM_SECONDS = 20.0
_REBUILD = "rebuild"
# In an earlier format, the command is missing.
_HOLDER = re.compile(r"(?P<pid>[0-9]+) (?P<jvm_pid>[0-9]*)(?: (?P<command>[a-z]+))?")

_log = logging.getLogger(__name__)


class CheckpointError(RemedyError):
    """Error: the checkpoint cannot be used."""

    exit_code = STAYS


class CheckpointInUseError(CheckpointError):
    """Error: a different process on this machine uses the checkpoint. A later start can succeed."""

    exit_code = MAY_PASS


class CheckpointDamagedError(CheckpointError):
    """Error: a file of the checkpoint is missing or damaged."""

    def __init__(self, uri: str, what: object) -> None:
        super().__init__(f"checkpoint {uri.rstrip('/')} is damaged ({what}): run `rebalance-monitor rebuild`")


class Identity(msgspec.Struct, frozen=True):
    """The constant values of a checkpoint.

    `origin` maps the name of each file in `origin/` to its checksum. `after` is the id of the previous checkpoint that
    wrote to the tables, or empty if unknown.
    """

    version: int
    checkpoint_id: str
    cluster: str
    shuffle_partitions: int
    source: str = OFFSETS_TOPIC_SOURCE
    origin: dict[str, int] = {}
    after: str = ""


def read_identity(files: Folder) -> Identity | None:
    """Read the identity. Return None if there is no checkpoint. Raises CheckpointError and CheckpointDamagedError."""
    stored = files.read(IDENTITY)
    if stored is None:
        return None
    uri = files.uri("").rstrip("/")
    try:
        version = json.loads(stored)["version"]
    except (ValueError, KeyError, TypeError):
        raise CheckpointDamagedError(uri, f"{IDENTITY} is {'not valid' if stored else 'empty'}") from None
    if version != CHECKPOINT_VERSION:
        raise CheckpointError(
            f"checkpoint {uri} has version {version}, but this monitor needs version {CHECKPOINT_VERSION}: "
            "run `rebalance-monitor rebuild`, or use the version of the monitor that created the checkpoint"
        )
    try:
        return msgspec.json.decode(stored, type=Identity)
    except msgspec.DecodeError as damaged:
        raise CheckpointDamagedError(uri, f"{IDENTITY}: {damaged}") from None


def check_files(uri: str) -> None:
    """Check the files of a checkpoint on a local disk. Raises CheckpointError with the file and the remedy.

    A damaged file that a start does not need is removed. A checkpoint on remote storage is not checked here, because
    the check takes seconds. If its query fails later, `check_restart_helps` checks the files.
    """
    folder = local_folder(uri)
    if folder is None:
        return
    try:
        if refusal := folder.refusal():
            raise CheckpointError(_storage_error_text(uri, refusal))
        if damage := find_damaged_file(folder):
            raise CheckpointDamagedError(uri, damage)
        disposable = find_disposable(folder)
        for file in disposable:
            (folder.root / file.name).unlink()
    except OSError as error:
        raise CheckpointError(_storage_error_text(uri, error)) from None
    if disposable:
        _log.warning(
            "removed %d damaged files from %s; the monitor does not need these files: %s",
            len(disposable),
            folder.root,
            "; ".join(map(str, disposable[:3])),
        )


def find_damaged_file(folder: Folder) -> DamagedFile | None:
    """Find the first missing or damaged file of a checkpoint. Raises OSError for an unreadable file."""
    identity = read_identity(folder)
    if identity is None:
        return find_query_without_identity(folder)
    return find_damage(folder, identity.origin, identity.source, identity.shuffle_partitions)


@contextmanager
def raising_checkpoint_errors(uri: str) -> Iterator[None]:
    """Convert an error of the checkpoint's storage into a CheckpointError with the remedy."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(_storage_error_text(uri, error)) from error


def _storage_error_text(uri: str, error: OSError) -> str:
    return (
        f"checkpoint {uri} cannot be used ({error.filename}: {error.strerror}): {storage_remedy(error)},"
        " or choose a different paths.checkpoint"
    )


def write_identity(files: Files, identity: Identity) -> None:
    """Write the identity, as the last step in the creation of a checkpoint."""
    files.write(IDENTITY, msgspec.json.encode(identity))


def check_identity(identity: Identity, cluster: str, shuffle_partitions: int, uri: str, source: str) -> None:
    """Raise CheckpointError if a setting differs from the setting with which the checkpoint was created.

    `source.kind` must not change, because log offsets and poll numbers (`admin-api`) cannot be compared.
    """
    for name, configured, stored in (
        ("source.kind", source, identity.source),
        ("kafka.cluster", cluster, identity.cluster),
        ("spark.shuffle_partitions", shuffle_partitions, identity.shuffle_partitions),
    ):
        if configured != stored:
            raise CheckpointError(
                f"checkpoint {uri} was created with {name} = {stored!r}, not {configured!r}: "
                "change the setting back, choose a different paths.checkpoint, or run `rebalance-monitor rebuild`"
            )


def read_cluster_id(files: Folder) -> str | None:
    """Return the stored id of the Kafka cluster. Return None if no id is stored, or if the file is damaged."""
    try:
        stored = files.read(CLUSTER_ID) or b""
    except OSError:
        return None
    match = _CLUSTER_ID.fullmatch(stored)
    return match and match[1].decode().rstrip()


def write_cluster_id(files: Files, cluster_id: str) -> None:
    """Store the id of the Kafka cluster."""
    files.write(CLUSTER_ID, f"{cluster_id}\n".encode())


def local_cluster_id(uri: str) -> str | None:
    """Return the stored id of the Kafka cluster without Spark. Return None if the checkpoint is on remote storage."""
    folder = local_folder(uri)
    return None if folder is None else read_cluster_id(folder)


def batch_end_positions(files: Files, batch_id: int) -> dict[int, int]:
    """For each partition, return the position at the end of a batch, which Spark writes before the batch runs.

    Raises CheckpointDamagedError.
    """
    name = f"{QUERY}/offsets/{batch_id}"
    try:
        for line in (files.read(name) or b"").decode().splitlines():
            if line.startswith("{") and OFFSETS_TOPIC in (parsed := json.loads(line)):
                return {int(partition): int(offset) for partition, offset in parsed[OFFSETS_TOPIC].items()}
    except ValueError:
        raise CheckpointDamagedError(files.uri(""), f"{name} is not JSON") from None
    return {}


def last_committed_batch(files: Files) -> int | None:
    """Return the number of the last committed batch. Return None before the first commit."""
    done = [int(name) for name in files.names(f"{QUERY}/commits") if name.isdigit()]
    return max(done, default=None)


def last_begun_batch(files: Folder) -> int:
    """Return the number of the last batch that was started. Return -1 if no batch was started."""
    return max((int(name) for name in files.names(f"{QUERY}/offsets") if name.isdigit()), default=-1)


class CheckpointLock:
    """A lock, so that only one monitor on this machine uses a checkpoint. Remote checkpoints also have this lock.

    When the process with the lock ends, the lock is released. The next process also waits until the Spark JVM of the
    previous process has ended. The lock file contains the process ids of the holder and of its JVM, and the command of
    the holder.
    """

    def __init__(self, checkpoint: str, *, is_rebuild: bool = False) -> None:
        self._checkpoint = checkpoint
        self._command = _REBUILD if is_rebuild else "run"
        self._path = _lock_path(checkpoint)
        self._descriptor = -1

    def __enter__(self) -> Self:
        """Acquire the lock. Raises CheckpointInUseError if a different process has the lock."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._descriptor = os.open(self._path, flags, 0o600)
            os.fchmod(self._descriptor, 0o600)  # a different user who can read the file could hold its lock
        except OSError as error:
            raise CheckpointError(_storage_error_text(self._checkpoint, error)) from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = self._holder()
            os.close(self._descriptor)
            use, remedy = "in use", "stop that process, or choose a different paths.checkpoint"
            if holder and holder["command"] == _REBUILD:
                use, remedy = "being rebuilt", "wait until the rebuild ends"
            raise CheckpointInUseError(
                f"checkpoint {self._checkpoint} is {use} by process {holder['pid'] if holder else 'unknown'}: {remedy}"
            ) from None
        self._wait_for_leftover_jvm()
        self.write_holder(None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Release the lock."""
        os.close(self._descriptor)

    def write_holder(self, jvm_pid: int | None) -> None:
        """Write the process ids of this process and of its JVM, and the command, to the lock file."""
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()} {jvm_pid or ''} {self._command}".encode(), 0)
        except OSError as error:
            error.filename = str(self._path)
            raise CheckpointError(_storage_error_text(self._checkpoint, error)) from None

    def _holder(self) -> Mapping[str, str] | None:
        """Return the content of the lock file, which describes the last holder. Return None if it is not valid."""
        match = _HOLDER.fullmatch(os.pread(self._descriptor, 200, 0).decode(errors="replace"))
        return match and match.groupdict()

    def _wait_for_leftover_jvm(self) -> None:
        holder, deadline = self._holder(), time.monotonic() + _LEFTOVER_JVM_SECONDS
        if not (holder and holder["jvm_pid"] and _is_leftover_jvm(int(holder["jvm_pid"]))):
            return
        _log.warning(
            "checkpoint %s: waiting at most %g s until process %s ends. It is the Java process of the previous monitor"
            " (process %s)",
            self._checkpoint,
            _LEFTOVER_JVM_SECONDS,
            holder["jvm_pid"],
            holder["pid"],
        )
        while _is_leftover_jvm(int(holder["jvm_pid"])) and time.monotonic() < deadline:
            time.sleep(0.2)


def _is_leftover_jvm(pid: int) -> bool:
    """Return True if the process is Java, and is not the JVM of this process.

    If a monitor of several clusters tries again to watch one of them, its own JVM still runs. With `spark-submit`, the
    JVM is the parent process.
    """
    try:
        process = psutil.Process(pid)
        return "java" in process.name() and process.ppid() != os.getpid() and pid != os.getppid()
    except psutil.Error:
        return False


def _lock_path(checkpoint: str) -> Path:
    """Return the path of the lock file. Relative paths, absolute paths and links to a checkpoint give the same path."""
    place = canonical_location(checkpoint)
    if local_path(checkpoint) is not None:
        return Path(f"{place}.lock")
    digest = hashlib.sha256(place.encode()).hexdigest()[:16]
    with raising_temporary_folder_error():
        return Path(tempfile.gettempdir(), f"rebalance-monitor-{digest}.lock")
