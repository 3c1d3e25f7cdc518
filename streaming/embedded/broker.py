"""Runs a Kafka broker in KRaft mode on the loopback interface.

The first broker of a cluster is also the only controller. Any number of brokers can join the cluster.
"""

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
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import TextIO

from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from typing_extensions import Self

from streaming.child_process import ChildProcess
from streaming.class_archive import ClassArchive, writes_archive
from streaming.config.environment import without_settings
from streaming.embedded.ports import free_port, is_taken
from streaming.embedded.properties import LOOPBACK, Listener, broker_properties, format_properties
from streaming.errors import RemedyError
from streaming.jars import BROKER_SETS, KAFKA_VERSION, resolve
from streaming.java import find_java

PERFORMANCE_OPTIONS = "KAFKA_JVM_PERFORMANCE_OPTS"
_LOG4J_CONFIGURATION = Path(__file__).with_name("log4j2.properties")
_HEAP = "-Xmx512m"
_START_TIMEOUT_SECONDS = 60.0
_STOP_GRACE_SECONDS = 15.0
_CLEAN_EXIT_CODES = (0, 128 + signal.SIGTERM)  # the JVM exits with the second code after SIGTERM
_EXCEPTION = re.compile(r'(Exception in thread "[^"]*" )?([a-z]\w*\.)+\w+(Exception|Error): (?P<words>.*)')
_ERROR = re.compile(r"ERROR|FATAL|[Ee]rror")


class BrokerError(RemedyError):
    """Error: the embedded broker cannot start or failed."""


class EmbeddedBroker:
    """A real broker for a demo, a test or a benchmark.

    The broker ends when this Python process ends, even if this process is killed. `folder` contains the log, the
    properties and the topics of the broker. After `stop` or `kill`, `start` restarts the broker with the same address
    and topics. If `port` is None, the broker uses a free port. `properties` override the default properties of this
    class. `kafka_version` is a key of `streaming.jars.BROKER_SETS`. Missing jars are downloaded. `java_options`
    override the options in the environment variable KAFKA_JVM_PERFORMANCE_OPTS.

    `more_listeners` maps the names of additional listeners to their Kafka security protocols. `properties` must contain
    their settings. `joins` is the first broker of an existing cluster that this broker joins. The first broker must
    run, and `properties` must contain a `node.id` that no other broker of the cluster has.

    Example:
        with EmbeddedBroker(Path("kafka"), properties={"offsets.topic.num.partitions": "3"}) as broker:
            KafkaProducer(bootstrap_servers=broker.bootstrap_servers)

    """

    def __init__(  # noqa: PLR0913 - each argument has a default and is independent of the others
        self,
        folder: Path,
        *,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        kafka_version: str = KAFKA_VERSION,
        java_options: Sequence[str] = (),
        more_listeners: Mapping[str, str] | None = None,
        joins: EmbeddedBroker | None = None,
    ) -> None:
        self.folder = folder.absolute()
        self.log_path = self.folder / "broker.log"
        self._properties_path = self.folder / "server.properties"
        self._output_path = self.folder / "broker.out"  # output of the JVM that is not in Kafka's log
        self._topics_folder = self.folder / "topics"
        self.port = port if port is not None else free_port()
        self._first = joins
        self._controller_port: int = free_port() if joins is None else joins._controller_port  # noqa: SLF001 - same class
        self._overrides = dict(properties or {})
        self._more_listeners = {
            name: Listener(protocol, free_port()) for name, protocol in (more_listeners or {}).items()
        }
        self._kafka_version = kafka_version
        self._java_options = tuple(java_options)
        self._process: ChildProcess | None = None
        self._folder_lock: TextIO | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, for example `127.0.0.1:21234`. A restart does not change the address."""
        return f"{LOOPBACK}:{self.port}"

    def address(self, listener: str) -> str:
        """Return the address that clients use for an additional listener."""
        return f"{LOOPBACK}:{self._more_listeners[listener].port}"

    @property
    def pid(self) -> int | None:
        """The process id of the broker, or None if the broker does not run."""
        return self._process.pid if self._process is not None and self._process.exit_code is None else None

    def start(self) -> Self:
        """Start the broker and wait 3 to 5 seconds until it answers. Raises BrokerError, JavaError or JarsError."""
        self.launch()
        self.wait_until_ready()
        return self

    def launch(self) -> None:
        """Start the broker if it does not run, but do not wait until it answers. Raises the same errors as `start`."""
        if self.pid is not None:
            return
        if self._kafka_version not in BROKER_SETS:
            raise BrokerError(f"unknown Kafka version {self._kafka_version}: choose one of {', '.join(BROKER_SETS)}")
        for port in (self.port, self._controller_port) if self._first is None else (self.port,):
            if is_taken(port):
                raise BrokerError(
                    f"port {port} is in use: stop the process that listens there (ss -ltnp) or choose a different port"
                )
        try:
            self._lock_folder()
            java, jars = find_java(), resolve(BROKER_SETS[self._kafka_version])
            class_path = os.pathsep.join(map(str, jars))
            if not (self._topics_folder / "meta.properties").exists():
                self._format_storage(java, class_path)
            for log in (self.log_path, self._output_path):
                log.unlink(missing_ok=True)
            self._process = ChildProcess(self._command(java, class_path), self._output_path)
        except BaseException:
            self._release_folder()
            raise

    def wait_until_ready(self) -> None:
        """Wait until the broker answers a Kafka request. After the timeout, kill the broker and raise BrokerError."""
        deadline = time.monotonic() + _START_TIMEOUT_SECONDS
        while not self._is_ready():
            if self.pid is None:
                self.kill()
                raise BrokerError(self._failure_message("ended while starting"))
            if time.monotonic() > deadline:
                self.kill()
                raise BrokerError(self._failure_message(f"did not answer within {_START_TIMEOUT_SECONDS:g} s"))
            time.sleep(0.1)

    def wait_until_ended(self) -> None:
        """Wait until the broker ends. Raises BrokerError if the broker failed."""
        if self._process is not None:
            self._process.wait()
            if self._process.exit_code not in _CLEAN_EXIT_CODES:
                raise BrokerError(self._failure_message(f"ended with code {self._process.exit_code}"))

    def stop(self, grace_seconds: float = _STOP_GRACE_SECONDS) -> None:
        """Stop the broker cleanly. If the broker still runs after `grace_seconds`, kill it."""
        if self._process is not None:
            self._process.stop(grace_seconds)
        self._release_folder()

    def kill(self) -> None:
        """Kill the broker immediately, to simulate a power failure.

        The next start takes about 10 s longer than after `stop`, because Kafka's controller first waits until the
        session of the killed broker times out. A test can set `broker.session.timeout.ms` to a lower value.
        """
        if self._process is not None:
            self._process.kill()
        self._release_folder()

    def __enter__(self) -> Self:
        """Start the broker."""
        try:
            return self.start()
        except BaseException:  # also KeyboardInterrupt during the start
            self.kill()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the broker."""
        self.stop()

    def _lock_folder(self) -> None:
        """Lock the folder and write the properties file. The lock ends when the broker stops or this process ends."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            folder_lock = self._folder_lock = self._folder_lock or (self.folder / "in-use").open("w")
            fcntl.flock(folder_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            properties = broker_properties(
                str(self._topics_folder),
                self.port,
                self._controller_port,
                self._overrides,
                self._more_listeners,
                is_controller=self._first is None,
            )
            self._properties_path.write_text(format_properties(properties))
        except BlockingIOError as error:
            raise BrokerError(f"another broker runs in {self.folder}: stop it or choose a different folder") from error
        except OSError as error:
            raise BrokerError(f"the broker's folder {self.folder} cannot be used: {error.strerror}") from error

    def _release_folder(self) -> None:
        self._process = None
        if self._folder_lock is not None:
            self._folder_lock.close()
            self._folder_lock = None

    def _format_storage(self, java: Path, class_path: str) -> None:
        """Write the cluster id into a new folder, like `kafka-storage.sh format`."""
        jvm = [java, "-XX:TieredStopAtLevel=1", *_archive_options(java, class_path), "-cp", class_path]
        tool = [*jvm, "kafka.tools.StorageTool", "format"]
        arguments = ["-t", self._find_cluster_id(), "-c", self._properties_path]
        result = subprocess.run(
            [str(word) for word in (*tool, *arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env=without_settings(os.environ),
        )
        if result.returncode != 0:
            reason = _find_failure_reason(result.stdout) or f"code {result.returncode}"
            raise BrokerError(f"the broker cannot start in {self.folder}: {reason}")

    def _find_cluster_id(self) -> str:
        if self._first is None:
            return cluster_id(uuid.uuid4())
        of_first = (self._first._topics_folder / "meta.properties").read_text()  # noqa: SLF001 - the same class
        return next(line.removeprefix("cluster.id=") for line in of_first.splitlines() if line.startswith("cluster.id"))

    def _command(self, java: Path, class_path: str) -> list[str]:
        logging = [f"-Dlog4j2.configurationFile={_LOG4J_CONFIGURATION}", f"-Dbroker.log.path={self.log_path}"]
        fixed_options = [_HEAP, "-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true", *logging]
        jvm = [*fixed_options, *_archive_options(java, class_path, self._java_options), *self._java_options]
        return [str(java), *jvm, "-cp", class_path, "kafka.Kafka", str(self._properties_path)]

    def _is_ready(self) -> bool:
        if not is_taken(self.port):
            return False
        try:
            admin = KafkaAdminClient(
                bootstrap_servers=self.bootstrap_servers, bootstrap_timeout_ms=2_000, request_timeout_ms=2_000
            )
            with closing(admin):
                return bool(admin.describe_cluster()["brokers"])
        except KafkaError:
            return False

    def _failure_message(self, event: str) -> str:
        logs = [path for path in (self.log_path, self._output_path) if path.exists()]
        reasons = (_find_failure_reason(path.read_text(errors="replace")) for path in logs)
        reason = next(filter(None, reasons), "its log contains no error")
        return f"the broker {event}: {reason} (log: {self.log_path})"


def cluster_id(source: uuid.UUID) -> str:
    """Return a cluster id in Kafka's format.

    The first character is never a dash, because Kafka's tools read a leading dash as an option.

    >>> cluster_id(uuid.UUID(int=0xF8 << 120))
    '4AAAAAAAAAAAAAAAAAAAAA'
    """
    # In URL-safe base64, a first byte of 0xF8 to 0xFB becomes a leading "-". Kafka's Uuid.randomUuid avoids it, too.
    first = source.bytes[0] & 0xE7 if source.bytes[0] >= 0xF8 else source.bytes[0]
    return base64.urlsafe_b64encode(bytes([first]) + source.bytes[1:]).decode().rstrip("=")


def _archive_options(java: Path, class_path: str, java_options: Sequence[str] = ()) -> list[str]:
    """Return the JVM options for the class archive, followed by the options in KAFKA_JVM_PERFORMANCE_OPTS."""
    of_environment = shlex.split(os.environ.get(PERFORMANCE_OPTIONS, ""))
    if writes_archive([*of_environment, *java_options]):
        return of_environment
    return [*ClassArchive("broker", java, class_path.split(os.pathsep)).options, *of_environment]


def _find_failure_reason(log: str) -> str | None:
    """Return the message of the first exception in a log. Without an exception, return the first error line."""
    lines = log.splitlines()
    exceptions = (match.group("words") for match in map(_EXCEPTION.match, lines) if match)
    errors = (line.strip() for line in lines if _ERROR.search(line))
    reason = next(exceptions, None) or next(errors, None)
    return None if reason is None else reason[:300]
