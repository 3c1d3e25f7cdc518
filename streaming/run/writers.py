"""Ensure that only one monitor writes the rows of a cluster into the tables.

A second monitor is detected at its start, or at a later renewal. Two monitors with different checkpoints would write
every row of a cluster twice. Delta cannot prevent this, because a batch id belongs to one checkpoint.

1. A monitor stores a record in the folder `_writers/` of the tables, with one file for each cluster and checkpoint. It
   renews the record every `RENEW_SECONDS`, and removes it at the stop. If `rebuild` replaces the checkpoint, the path
   stays the same, and therefore also the record file. If the checkpoint is on a local disk, the host is a part of the
   file name, because two hosts can use the same path for different checkpoints.
2. At the start, and at each renewal, a monitor reads the records of other writers of its cluster. A writer on this
   machine is alive if a process with the recorded id and start time exists. The start time is counted in clock ticks
   since boot, so the check does not depend on the system time. A writer on a different machine is alive if it renews
   its record during the check. A starting monitor watches the records for at most `WATCH_SECONDS`. So a crashed writer
   blocks the start only briefly.
3. If two writers are alive, one of them stops (`gives_way`). If one writer is starting and the other already writes,
   the starting writer stops. In all other situations, the writer that started later stops.
4. Everyone who can read the tables can also read the records, and other monitors print the records. So a record does
   not contain a user name or a password.
5. If a record cannot be read or written, the monitor continues, logs the failure once, and detects no second writer.
6. A writer on a different machine can pause for more than `WATCH_SECONDS`, for example on a suspended machine. Then a
   new writer removes its record. So before each append, a monitor reads its own record. If the record is missing or
   belongs to a different run, the monitor stops without the append. In two cases, both monitors still write. If a
   monitor pauses between the check and the end of the append, the rows are written twice. If a monitor pauses during a
   renewal, it writes its record again after the pause. Then both monitors write until one monitor stops (rule 3).
7. A repair changes the rows of all clusters. So it reads the records of all clusters, and stops if a writer is alive.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import msgspec
from py4j.protocol import Py4JError
from typing_extensions import Self

from streaming.config.secret_settings import without_credentials
from streaming.config.types.paths import local_path
from streaming.errors import STAYS, RemedyError
from streaming.spark.causes import is_spark_gone, plain_cause
from streaming.spark.files import Files

FOLDER = "_writers"
RENEW_SECONDS = 15.0
WATCH_SECONDS = 40.0
"""Maximum time in seconds to watch other writers. A renewal can be late, so this is more than two intervals."""

_CHECK_SECONDS = 2.0
_STORAGE_ERRORS = (OSError, Py4JError)

_REMEDY = (
    "The tables would have every row twice: stop one of the two monitors, or set a different paths.tables for this"
    " monitor"
)
_REPAIR_REMEDY = (
    "The repair would change tables while this monitor writes: stop this monitor, then start the repair again"
)

_log = logging.getLogger(__name__)


class SecondWriterError(RemedyError):
    """Error: a different monitor writes rows of the same cluster into the same tables."""

    exit_code = STAYS


class Writer(msgspec.Struct, frozen=True):
    """The content of a record, which describes one run of a monitor.

    Without `/proc`, `machine` is empty and `process_start_ticks` is None. In records of earlier versions of the
    monitor, `process_start_ticks` is also None.
    """

    run_id: str
    cluster: str
    checkpoint: str
    host: str
    machine: str
    pid: int
    began_ms: int
    process_start_ticks: int | None = None
    is_writing: bool = False
    renewals: int = 0


def gives_way(mine: Writer, other: Writer) -> bool:
    """Return True if `mine` must stop, and False if `other` must stop (rule 3).

    If the clusters differ, `mine` belongs to a repair, which stops (rule 7).
    """
    if mine.cluster != other.cluster:
        return True
    if mine.is_writing != other.is_writing:
        return other.is_writing
    return (other.began_ms, other.run_id) < (mine.began_ms, mine.run_id)


class WriterClaim:
    """The right to write a cluster's rows. If a second writer forces this monitor to stop, `refusal` is the error.

    With `is_repair`, the right includes the rows of all clusters (rule 7).
    """

    def __init__(  # noqa: PLR0913 - everything that a record needs
        self,
        open_files: Callable[[], Files],
        cluster: str,
        checkpoint: str,
        now_ms: Callable[[], int],
        stop: threading.Event,
        *,
        is_repair: bool = False,
    ) -> None:
        self._open_files = open_files
        self._opened_files: Files | None = None
        self._stop = stop
        host = socket.gethostname()
        place = checkpoint if local_path(checkpoint) is None else f"{host} {checkpoint}"
        self._own_name = f"{FOLDER}/{digest(cluster)}-{digest(place)}.json"
        self._prefix = "" if is_repair else digest(cluster)
        self._remedy = _REPAIR_REMEDY if is_repair else _REMEDY
        pid = os.getpid()
        self._mine = Writer(
            run_id=uuid.uuid4().hex,
            cluster=cluster,
            checkpoint=without_credentials(checkpoint),
            host=host,
            machine=_machine(),
            pid=pid,
            began_ms=now_ms(),
            process_start_ticks=_process_start_ticks(pid),
        )
        self._renewals: dict[str, int] = {}
        self._is_stored = False
        self._record_lock = threading.Lock()
        """Prevents a thread from reading the record of this run while a different thread replaces the record."""
        self._is_reported = False
        self.refusal: SecondWriterError | None = None

    def __enter__(self) -> Self:
        """Store the record of this run. Raise SecondWriterError if a second writer is alive."""
        try:
            self._write()
            self._await_others()
            self._check_record()
            self._write(is_writing=True)
        except SecondWriterError:
            self._remove_own()
            raise
        except _STORAGE_ERRORS as error:
            self._report(error)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Remove the record if it still belongs to this run."""
        self._remove_own()

    def keep(self, stop: threading.Event) -> None:
        """Renew the record until `stop` is set, or until this writer must stop."""
        while not stop.wait(RENEW_SECONDS) and self.refusal is None:
            try:
                self.renew()
            except SecondWriterError as refusal:  # noqa: PERF203 - the loop waits seconds between renewals
                self.refusal = refusal
            except _STORAGE_ERRORS as error:
                self._report(error)

    def check(self) -> None:
        """Raise SecondWriterError if this writer must stop. Call the method before each append (rule 6)."""
        with self._record_lock:
            if self.refusal is None:
                try:
                    self._check_record()
                except SecondWriterError as refusal:
                    self.refusal = refusal
                except _STORAGE_ERRORS as error:
                    self._report(error)
        if self.refusal is not None:
            raise self.refusal

    def renew(self) -> None:
        """Check for other writers, then renew the record. Raises SecondWriterError if this writer must stop."""
        with self._record_lock:
            self._check_record()
            for name, other in self._others().items():
                if self._is_alive(name, other) and gives_way(self._mine, other):
                    raise self._second_writer_error(name, other, "writes with")
            self._write()

    def _check_record(self) -> None:
        """Raise SecondWriterError if a different run replaced or removed the record of this run."""
        content = self._files.read(self._own_name)
        record = _decode(content)
        if record is not None and record.run_id != self._mine.run_id:
            raise self._second_writer_error(self._own_name, record, "took over")
        if content is None and self._is_stored:  # if the last write failed, a missing record is normal
            raise SecondWriterError(
                f"{self._files.uri(self._own_name)}: the record of this monitor is missing. If a monitor pauses for"
                f" more than {WATCH_SECONDS:.0f} s, a second monitor removes its record and writes. {_REMEDY}"
            )

    def _await_others(self) -> None:
        """Wait until this monitor knows which other writers are alive (rule 2). Remove the records of dead writers."""
        deadline = time.monotonic() + WATCH_SECONDS
        unknown = self._others()
        while unknown:
            for name, other in [*unknown.items()]:
                is_here, is_alive = self._is_here(other), self._is_alive(name, other)
                if is_alive and gives_way(self._mine, other):
                    raise self._second_writer_error(name, other, "writes with")
                if is_here and not is_alive:
                    self._remove(name)
                if is_here or is_alive:
                    del unknown[name]
            if unknown and time.monotonic() >= deadline:
                for name in unknown:
                    self._remove(name)
                return
            if unknown and self._stop.wait(_CHECK_SECONDS):
                return
            unknown = {name: self._read(name) or other for name, other in unknown.items()}

    @property
    def _files(self) -> Files:
        """The folder of the tables, opened at the first use. Raises an error if Spark has no client for the storage."""
        if self._opened_files is None:  # the lock of `cached_property` (Python 3.11) would block the other clusters
            self._opened_files = self._open_files()
        return self._opened_files

    def _is_alive(self, name: str, other: Writer) -> bool:
        if self._is_here(other):
            return _process_start_ticks(other.pid) == other.process_start_ticks
        before = self._renewals.setdefault(name, other.renewals)
        self._renewals[name] = other.renewals
        return other.renewals != before

    def _is_here(self, other: Writer) -> bool:
        is_known = bool(other.machine) and other.process_start_ticks is not None
        return is_known and other.machine == self._mine.machine

    def _others(self) -> dict[str, Writer]:
        others = {}
        for name in self._files.names(FOLDER):
            path = f"{FOLDER}/{name}"
            if name.startswith(self._prefix) and path != self._own_name and (other := self._read(path)) is not None:
                others[path] = other
        return others

    def _read(self, name: str) -> Writer | None:
        """Return None if the record is missing or damaged. A renewal replaces a damaged record."""
        return _decode(self._files.read(name))

    def _write(self, *, is_writing: bool | None = None) -> None:
        writing = self._mine.is_writing if is_writing is None else is_writing
        self._mine = msgspec.structs.replace(self._mine, renewals=self._mine.renewals + 1, is_writing=writing)
        self._is_stored = False
        self._files.write(self._own_name, msgspec.json.encode(self._mine))
        self._is_stored = True

    def _remove_own(self) -> None:
        with contextlib.suppress(*_STORAGE_ERRORS):
            record = self._read(self._own_name)
            if record is not None and record.run_id == self._mine.run_id:
                self._remove(self._own_name)

    def _remove(self, name: str) -> None:
        with contextlib.suppress(*_STORAGE_ERRORS):
            self._files.delete(name)

    def _second_writer_error(self, name: str, other: Writer, verb: str) -> SecondWriterError:
        return SecondWriterError(
            f"{self._files.uri(name)}: process {other.pid} on {other.host} {verb} checkpoint {other.checkpoint} for"
            f" cluster {other.cluster!r}. {self._remedy}"
        )

    def _report(self, error: Exception) -> None:
        level = logging.DEBUG if self._is_reported or is_spark_gone(error) else logging.WARNING
        cause, self._is_reported = plain_cause(error), True
        _log.log(level, "%s: cannot check for a second writer: %s: %s", self._mine.cluster, self._own_name, cause)


def _decode(content: bytes | None) -> Writer | None:
    try:
        return None if content is None else msgspec.json.decode(content, type=Writer)
    except msgspec.MsgspecError:
        return None


def _process_start_ticks(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot (field 22 of `/proc/PID/stat`).

    Return None if the process has ended, or if the operating system has no `/proc`. After a process has ended, its
    state (field 3) is `Z` until the parent process reads the exit code. In a container, the parent process possibly
    never reads it. So the state `Z` means that the process has ended. Field 2 is the name of the program in brackets.
    The name can contain spaces and brackets.
    """
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if state == b"Z" else int(fields[18])


def _machine() -> str:
    """Return an id of the running operating system and its process namespace. Without `/proc`, return an empty text."""
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot_id} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def digest(text: str) -> str:
    """Hash a cluster name or a checkpoint path. The result is valid as a part of a file name."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
