"""One monitor writes a cluster's rows into the tables. A second one is found at its start, and while both run.

Two checkpoints of one cluster over the same tables would write every row twice: Delta knows a batch by its checkpoint.

1. A monitor keeps a record below the tables (`_writers/`), one file for a cluster and checkpoint. It renews the record
   every `RENEW_SECONDS` and removes it when it stops. A checkpoint that `rebuild` puts in an old one's place is the
   same writer's.
2. At the start, and at each renewal, the records of the same cluster's other writers are read. Whether their writer
   lives: on this machine its process is there or not. Elsewhere its record is renewed while we look, or not. No two
   clocks are compared. A start waits `WATCH_SECONDS` for that at most, so a writer that crashed blocks nobody for long.
3. Of two that live, one gives way (`gives_way`): one that starts to one that writes, else the later to the earlier.
4. Everybody who reads the tables may read a record, and another monitor prints it: it has no user and no password.
5. A record that cannot be read or written stops nobody: it is reported once, and a second writer then goes unnoticed.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import socket
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import msgspec
import psutil
from py4j.protocol import Py4JError
from typing_extensions import Self

from streaming.config.redaction import without_credentials
from streaming.errors import STAYS, RemedyError
from streaming.spark.files import Files

FOLDER = "_writers"
RENEW_SECONDS = 15.0
WATCH_SECONDS = 40.0
"""More than two renewals: one may be late."""

_LOOK_SECONDS = 2.0
_STORAGE_ERRORS = (OSError, Py4JError)

_log = logging.getLogger(__name__)


class SecondWriterError(RemedyError):
    """Another monitor writes this cluster's rows into these tables."""

    exit_code = STAYS


class Writer(msgspec.Struct, frozen=True):
    """Who writes: one run of a monitor. `machine` is empty where processes of another run cannot be looked at."""

    run_id: str
    cluster: str
    checkpoint: str
    host: str
    machine: str
    pid: int
    process_started_seconds: float
    began_ms: int
    is_writing: bool = False
    renewals: int = 0


def gives_way(mine: Writer, other: Writer) -> bool:
    """Rule 3. Of any two writers exactly one gives way."""
    if mine.is_writing != other.is_writing:
        return other.is_writing
    return (other.began_ms, other.run_id) < (mine.began_ms, mine.run_id)


class WriterClaim:
    """Holds the right to write a cluster's rows; a context. `refusal` is set when another monitor has the right."""

    def __init__(
        self,
        open_files: Callable[[], Files],
        cluster: str,
        checkpoint: str,
        now_ms: Callable[[], int],
        stop: threading.Event,
    ) -> None:
        self._open_files = open_files
        self._opened: Files | None = None
        self._stop = stop
        self._own_name = _name(cluster, checkpoint)
        self._prefix = _digest(cluster)
        me = psutil.Process()
        self._mine = Writer(
            run_id=uuid.uuid4().hex,
            cluster=cluster,
            checkpoint=without_credentials(checkpoint),
            host=socket.gethostname(),
            machine=_machine(),
            pid=me.pid,
            process_started_seconds=me.create_time(),
            began_ms=now_ms(),
        )
        self._renewals: dict[str, int] = {}
        self._is_said = False
        self.refusal: SecondWriterError | None = None

    def __enter__(self) -> Self:
        """Take it. Raises SecondWriterError where another writer lives, at the latest after `WATCH_SECONDS`."""
        try:
            self._write()
            self._await_others()
            self._write(is_writing=True)
        except SecondWriterError:
            self._remove(self._own_name)
            raise
        except _STORAGE_ERRORS as error:
            self._report(error)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let go, unless another run has the record by now."""
        with contextlib.suppress(*_STORAGE_ERRORS):
            found = self._read(self._own_name)
            if found is not None and found.run_id == self._mine.run_id:
                self._remove(self._own_name)

    def keep(self, stop: threading.Event) -> None:
        """Renew until `stop` is set or another writer has to be left to it."""
        while not stop.wait(RENEW_SECONDS) and self.refusal is None:
            try:
                self.renew()
            except SecondWriterError as refusal:  # noqa: PERF203 - it waits seconds in between
                self.refusal = refusal
            except _STORAGE_ERRORS as error:
                self._report(error)

    def check(self) -> None:
        """Raise SecondWriterError once another writer has to be left to it."""
        if self.refusal is not None:
            raise self.refusal

    def renew(self) -> None:
        """Look for others, then renew. Raises SecondWriterError."""
        found = self._read(self._own_name)
        if found is not None and found.run_id != self._mine.run_id:
            raise self._refused(self._own_name, found, "took over")
        for name, other in self._others().items():
            if self._lives(name, other) and gives_way(self._mine, other):
                raise self._refused(name, other, "writes with")
        self._write()

    def _await_others(self) -> None:
        """Rule 2. Records of writers that are dead are removed."""
        deadline = time.monotonic() + WATCH_SECONDS
        unsure = self._others()
        while unsure:
            for name, other in [*unsure.items()]:
                is_here, is_alive = self._is_here(other), self._lives(name, other)
                if is_alive and gives_way(self._mine, other):
                    raise self._refused(name, other, "writes with")
                if is_here and not is_alive:
                    self._remove(name)
                if is_here or is_alive:
                    del unsure[name]
            if unsure and time.monotonic() >= deadline:
                for name in unsure:
                    self._remove(name)
                return
            if unsure:
                if self._stop.wait(_LOOK_SECONDS):
                    return
                unsure = {name: self._read(name) or other for name, other in unsure.items()}

    @property
    def _files(self) -> Files:
        """Where the records are. Storage that Spark has no client for fails here."""
        if self._opened is None:
            self._opened = self._open_files()
        return self._opened

    def _lives(self, name: str, other: Writer) -> bool:
        if self._is_here(other):
            return _is_running(other)
        before = self._renewals.setdefault(name, other.renewals)
        self._renewals[name] = other.renewals
        return other.renewals != before

    def _is_here(self, other: Writer) -> bool:
        return bool(other.machine) and other.machine == self._mine.machine

    def _others(self) -> dict[str, Writer]:
        found = {}
        for name in self._files.names(FOLDER):
            path = f"{FOLDER}/{name}"
            if name.startswith(self._prefix) and path != self._own_name and (other := self._read(path)) is not None:
                found[path] = other
        return found

    def _read(self, name: str) -> Writer | None:
        """None, too, for what is no record: half of one is replaced at the next renewal."""
        stored = self._files.read(name)
        try:
            return None if stored is None else msgspec.json.decode(stored, type=Writer)
        except msgspec.MsgspecError:
            return None

    def _write(self, *, is_writing: bool | None = None) -> None:
        writing = self._mine.is_writing if is_writing is None else is_writing
        self._mine = msgspec.structs.replace(self._mine, renewals=self._mine.renewals + 1, is_writing=writing)
        self._files.write(self._own_name, msgspec.json.encode(self._mine))

    def _remove(self, name: str) -> None:
        with contextlib.suppress(*_STORAGE_ERRORS):
            self._files.delete(name)

    def _refused(self, name: str, other: Writer, does: str) -> SecondWriterError:
        who = f"process {other.pid} on {other.host} {does} checkpoint {other.checkpoint} for cluster {other.cluster!r}"
        return SecondWriterError(
            f"{self._files.uri(name)}: {who}, and every row would be in the tables twice: stop one of the two monitors,"
            " or give this one another paths.tables"
        )

    def _report(self, error: Exception) -> None:
        level = logging.DEBUG if self._is_said else logging.WARNING
        reason = str(error).partition("\n")[0]
        _log.log(level, "%s: a second writer would go unnoticed: %s: %s", self._mine.cluster, self._own_name, reason)
        self._is_said = True


def _is_running(other: Writer) -> bool:
    try:
        return bool(abs(psutil.Process(other.pid).create_time() - other.process_started_seconds) < 1)
    except psutil.Error:
        return False


def _machine() -> str:
    """Name the boot of the system and the namespace of processes. Empty where the system does not name them."""
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot_id} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _name(cluster: str, checkpoint: str) -> str:
    return f"{FOLDER}/{_digest(cluster)}-{_digest(checkpoint)}.json"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
