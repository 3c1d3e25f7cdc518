"""`EmbeddedBroker`: Kafka in KRaft mode, one node, on loopback, in a folder and on ports of its own."""

from __future__ import annotations

import base64
import fcntl
import os
import re
import shlex
import signal
import subprocess
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from streaming.child_process import ChildProcess
from streaming.embedded.ports import free_port, is_taken
from streaming.embedded.properties import LOOPBACK, Listener, broker_properties, format_properties
from streaming.errors import RemedyError
from streaming.jars import BROKER_SETS, KAFKA_VERSION, resolve
from streaming.java import find_java

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Self

PERFORMANCE_OPTIONS = "KAFKA_JVM_PERFORMANCE_OPTS"
_LOG4J_CONFIGURATION = Path(__file__).with_name("log4j2.properties")
_START_TIMEOUT_SECONDS = 60.0
_STOP_GRACE_SECONDS = 15.0
_CLEAN_EXIT_CODES = (0, 128 + signal.SIGTERM)  # the JVM's, when asked to end by SIGTERM
_EXCEPTION = re.compile(r'(Exception in thread "[^"]*" )?([a-z]\w*\.)+\w+(Exception|Error): (?P<words>.*)')
_ERROR = re.compile(r"ERROR|FATAL|[Ee]rror")


class BrokerError(RemedyError):
    """The embedded broker can't start."""


class EmbeddedBroker:
    """A real broker for a demo, a test or a benchmark.

    `folder` holds its log, its properties and its topics, and is made if missing. A broker that was stopped or killed
    can be started again and has the same address and topics. Without `port` a free one is taken. `properties` are
    Kafka's own and win over ours. `kafka_version` is one of `streaming.jars.BROKER_SETS`; its jars are fetched if this
    user never had them. `java_options` are for its JVM, behind those of KAFKA_JVM_PERFORMANCE_OPTS in the environment,
    which Kafka's own scripts read too. `more_listeners` are ways in beside the plain one, Kafka's security protocol by
    a name of your choice; `properties` must say what they need. It ends when this process does,
    however that happens.

    Example:
        with EmbeddedBroker(Path("kafka"), properties={"offsets.topic.num.partitions": "3"}) as broker:
            KafkaProducer(bootstrap_servers=broker.bootstrap_servers)

    """

    def __init__(  # noqa: PLR0913 - each has a default, and none stands for another
        self,
        folder: Path,
        *,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        heap_mib: int = 512,
        kafka_version: str = KAFKA_VERSION,
        java_options: Sequence[str] = (),
        more_listeners: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder.absolute()
        self.port = port if port is not None else free_port()
        self._controller_port = free_port()
        self._overrides = dict(properties or {})
        self._more_listeners = {
            name: Listener(protocol, free_port()) for name, protocol in (more_listeners or {}).items()
        }
        self._heap_mib = heap_mib
        self._kafka_version = kafka_version
        self._java_options = tuple(java_options)
        self._process: ChildProcess | None = None
        self._claim: TextIO | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, such as `127.0.0.1:21234`; it stays the same over restarts."""
        return f"{LOOPBACK}:{self.port}"

    def address(self, listener: str) -> str:
        """The address for clients of one of `more_listeners`."""
        return f"{LOOPBACK}:{self._more_listeners[listener].port}"

    @property
    def log_path(self) -> Path:
        """Kafka's own log."""
        return self.folder / "broker.log"

    @property
    def pid(self) -> int | None:
        """The broker's process id while it runs."""
        return self._process.pid if self._process is not None and self._process.exit_code is None else None

    def start(self) -> Self:
        """Start it and return when it answers requests, after some 3 to 5 seconds.

        Raises BrokerError with the reason if it doesn't, JavaError without a fitting Java, JarsError without its jars.
        """
        self.launch()
        self.wait_until_ready()
        return self

    def launch(self) -> None:
        """Start it without waiting, so that other things can start meanwhile. Does nothing if it runs."""
        if self.pid is not None:
            return
        if self._kafka_version not in BROKER_SETS:
            raise BrokerError(f"no Kafka {self._kafka_version} is known: choose one of {', '.join(BROKER_SETS)}")
        for port in (self.port, self._controller_port):
            if is_taken(port):
                raise BrokerError(
                    f"port {port} is in use: stop the process that listens there (ss -ltnp) or choose a different port"
                )
        try:
            self._claim_folder()
            self._run(find_java(), os.pathsep.join(map(str, resolve(BROKER_SETS[self._kafka_version]))))
        except BaseException:
            self._let_go()
            raise

    def wait_until_ready(self, timeout_seconds: float = _START_TIMEOUT_SECONDS) -> None:
        """Return when it answers a real request. Raises BrokerError, and ends it, if it doesn't within that time."""
        deadline = time.monotonic() + timeout_seconds
        while not self._answers():
            if self.pid is None:
                self.kill()
                raise BrokerError(self._why("ended while starting"))
            if time.monotonic() > deadline:
                self.kill()
                raise BrokerError(self._why(f"did not answer within {timeout_seconds:g} s"))
            time.sleep(0.1)

    def wait_until_ended(self) -> None:
        """Return when it is stopped from elsewhere, or raise BrokerError with the reason if it fails."""
        if self._process is not None:
            self._process.wait()
            if self._process.exit_code not in _CLEAN_EXIT_CODES:
                raise BrokerError(self._why(f"ended with code {self._process.exit_code}"))

    def stop(self, grace_seconds: float = _STOP_GRACE_SECONDS) -> None:
        """Shut it down cleanly; after `grace_seconds` it is killed. Does nothing if it doesn't run."""
        if self._process is not None:
            self._process.stop(grace_seconds)
        self._let_go()

    def kill(self) -> None:
        """End it at once, as a power cut would. `start` brings it back with what it had written.

        That start takes some 10 s more than after `stop`: Kafka's controller first waits for the session of the broker
        that died (`broker.session.timeout.ms`; set it lower where a test can't wait).
        """
        if self._process is not None:
            self._process.kill()
        self._let_go()

    def __enter__(self) -> Self:
        """Start it."""
        try:
            return self.start()
        except BaseException:  # Ctrl-C while it starts, too
            self.kill()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop it."""
        self.stop()

    def _claim_folder(self) -> None:
        """Make the folder ours alone, until we stop or our process ends, and write the properties there."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            claim = self._claim = self._claim or (self.folder / "in-use").open("w")
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            properties = broker_properties(
                str(self._topics_folder), self.port, self._controller_port, self._overrides, self._more_listeners
            )
            self._properties_path.write_text(format_properties(properties))
        except BlockingIOError as error:
            raise BrokerError(f"another broker runs in {self.folder}: stop it or choose another folder") from error
        except OSError as error:
            raise BrokerError(f"the broker's folder {self.folder} can't be used: {error.strerror}") from error

    @property
    def _properties_path(self) -> Path:
        return self.folder / "server.properties"

    @property
    def _output_path(self) -> Path:
        return self.folder / "broker.out"  # what the JVM says outside of Kafka's log

    @property
    def _topics_folder(self) -> Path:
        return self.folder / "topics"

    def _run(self, java: Path, class_path: str) -> None:
        if not (self._topics_folder / "meta.properties").exists():
            self._format_storage(java, class_path)
        for log in (self.log_path, self._output_path):
            log.unlink(missing_ok=True)
        self._process = ChildProcess(self._command(java, class_path), self._output_path)

    def _let_go(self) -> None:
        self._process = None
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def _format_storage(self, java: Path, class_path: str) -> None:
        """Give a new folder its cluster id, as `kafka-storage.sh format` does."""
        jvm = [java, "-XX:TieredStopAtLevel=1", *_performance_options(), "-cp", class_path]
        tool = [*jvm, "kafka.tools.StorageTool", "format"]
        arguments = ["-t", cluster_id(uuid.uuid4()), "-c", self._properties_path]
        formatted = subprocess.run(
            [str(word) for word in (*tool, *arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if formatted.returncode != 0:
            reason = _first_reason(formatted.stdout) or f"code {formatted.returncode}"
            raise BrokerError(f"the broker can't start in {self.folder}: {reason}")

    def _command(self, java: Path, class_path: str) -> list[str]:
        heap = f"-Xmx{self._heap_mib}m"
        logging = [f"-Dlog4j2.configurationFile={_LOG4J_CONFIGURATION}", f"-Dbroker.log.path={self.log_path}"]
        fixed = [heap, "-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true", *logging]
        jvm = [*fixed, *_performance_options(), *self._java_options]
        return [str(java), *jvm, "-cp", class_path, "kafka.Kafka", str(self._properties_path)]

    def _answers(self) -> bool:
        if not is_taken(self.port):
            return False
        try:
            admin = KafkaAdminClient(
                bootstrap_servers=self.bootstrap_servers, bootstrap_timeout_ms=2_000, request_timeout_ms=2_000
            )
        except KafkaError:
            return False
        try:
            return bool(admin.describe_cluster()["brokers"])
        except KafkaError:
            return False
        finally:
            admin.close()

    def _why(self, what: str) -> str:
        logs = [path for path in (self.log_path, self._output_path) if path.exists()]
        reasons = (_first_reason(path.read_text(errors="replace")) for path in logs)
        reason = next(filter(None, reasons), "its log says nothing")
        return f"the broker {what}: {reason} (log: {self.log_path})"


def cluster_id(source: uuid.UUID) -> str:
    """Return a cluster id as Kafka writes them, never led by a dash: its tools would take that for an option.

    >>> cluster_id(uuid.UUID(int=0xF8 << 120))
    '4AAAAAAAAAAAAAAAAAAAAA'
    """
    # A first byte of 0xF8 to 0xFB is a leading "-" in URL-safe base64. Kafka's Uuid.randomUuid avoids it too.
    first = source.bytes[0] & 0xE7 if source.bytes[0] >= 0xF8 else source.bytes[0]
    return base64.urlsafe_b64encode(bytes([first]) + source.bytes[1:]).decode().rstrip("=")


def _performance_options() -> list[str]:
    return shlex.split(os.environ.get(PERFORMANCE_OPTIONS, ""))


def _first_reason(log: str) -> str | None:
    """Return what a log says of a failure: its first exception's own words, else its first error."""
    lines = log.splitlines()
    thrown = (found.group("words") for found in map(_EXCEPTION.match, lines) if found)
    errors = (line.strip() for line in lines if _ERROR.search(line))
    reason = next(thrown, None) or next(errors, None)
    return None if reason is None else reason[:300]
