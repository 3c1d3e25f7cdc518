"""Run the monitor as its users do: as a process that tests query over HTTP, stop and kill."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import psutil
from deltalake import DeltaTable
from prometheus_client.parser import text_string_to_metric_families

from streaming.child_process import with_parent_death_signal
from streaming.page.addresses import GROUP_API, group_address

READY_SECONDS = 180.0

Answer = TypeVar("Answer")
Row = dict[str, Any]
Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]


def until(what: str, ask: Callable[[], Answer], timeout_seconds: float = 60.0) -> Answer:
    """Call `ask` until its answer is true, and return the answer.

    After the timeout fail with `what`, the thing that the test waits for, and with the last answer.
    """
    deadline = time.monotonic() + timeout_seconds
    while not (answer := ask()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_seconds:g} s for {what}; last answer: {answer!r}")
        time.sleep(0.3)
    return answer


def samples(text: str) -> Samples:
    """Parse a scrape into values by sample name and sorted labels."""
    scraped: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            scraped.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return scraped


STARTED: list[MonitorProcess] = []
"""Every monitor that was started, in order. A failed test must not leave a monitor that slows down other tests."""


@dataclass(frozen=True)
class Access:
    """The client's side of a protected port: the trusted CA, and the headers with the password."""

    trusting: ssl.SSLContext
    headers: Mapping[str, str]


@dataclass
class MonitorProcess:
    """`rebalance-monitor run` with its own folder. It can be started and killed many times."""

    bootstrap_servers: str
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    command: Sequence[str] = (sys.executable, "-m", "streaming.cli", "run", "--log-level", "DEBUG")
    access: Access | None = None
    process: subprocess.Popen[bytes] | None = None
    port: int = 0
    _tables: dict[str, tuple[DeltaTable, int, list[Row]]] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        """Return the log file, which contains all starts."""
        return self.folder / "monitor.log"

    def start(self) -> MonitorProcess:
        """Start it and wait only until its port is open."""
        self.folder.mkdir(parents=True, exist_ok=True)
        log_size = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                with_parent_death_signal(self.command), stdout=log, stderr=log, env=self._environment()
            )
        STARTED.append(self)
        self.port = until("the port", lambda: self._port_logged_after(log_size))
        return self

    def _environment(self) -> dict[str, str]:
        defaults = {
            "KAFKA__BOOTSTRAP_SERVERS": self.bootstrap_servers,
            "KAFKA__CONNECT_TIMEOUT_SECONDS": "10",
            "PATHS__CHECKPOINT": str(self.folder / "checkpoint"),
            "PATHS__TABLES": str(self.folder / "tables"),
            "METRICS__PORT": "0",
            "METRICS__GRANULARITY": "partition",
            "METRICS__COMPATIBLE_WITH": '["kafka_exporter"]',
            "SAMPLING__INTERVAL_SECONDS": "1",
            "SAMPLING__LAG_TABLE_SECONDS": "1",
        }
        prefixed = {f"REBALANCE_MONITOR_{name}": value for name, value in {**defaults, **self.environment}.items()}
        return {**os.environ, **prefixed}

    def _port_logged_after(self, position: int) -> int:
        if self.process is not None and self.process.poll() is not None:
            raise AssertionError(f"the monitor ended with {self.process.returncode}:\n{self.log.read_text()[-3000:]}")
        logged = self.log.read_bytes()[position:].decode()
        return int(logged.split("/metrics")[0].rpartition(":")[2]) if "/metrics" in logged else 0

    def wait_until_ready(self) -> MonitorProcess:
        """Wait until the monitor is ready."""
        try:
            until("ready", lambda: self.alive() and self.value("rebalance_monitor_ready") == 1, READY_SECONDS)
        except AssertionError as failure:
            raise AssertionError(f"{failure}\n{self.log.read_text()[-3000:]}") from None
        return self

    def alive(self) -> bool:
        """Return True while the process runs. Fail if it ended."""
        if self.process is None or self.process.poll() is not None:
            raise AssertionError(f"the monitor ended:\n{self.log.read_text()[-3000:]}")
        return True

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Suspend the monitor and its Spark processes inside the block."""
        assert self.process is not None
        parent = psutil.Process(self.process.pid)
        suspended = [parent, *parent.children(recursive=True)]
        try:
            for process in suspended:
                with suppress(psutil.NoSuchProcess):  # Spark ends idle workers
                    process.suspend()
            yield
        finally:
            for process in suspended:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    def kill(self) -> None:
        """Kill it with SIGKILL and wait until it has ended."""
        self._end(signal.SIGKILL)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Stop it with a signal and return its exit code."""
        return self._end(how)

    def _end(self, how: signal.Signals) -> int:
        if self.process is None:
            return 0
        self.process.send_signal(how)
        code = self.process.wait(60)
        self.process = None
        return code

    def run_command(self, *words: str) -> str:
        """Run a command of the program with the same settings and return its output. It must succeed."""
        completed = self._run(*words)
        assert completed.returncode == 0, completed.stderr
        return completed.stdout

    def refused_command(self, *words: str, exit_code: int | None = None) -> str:
        """Run a command that must fail, with this exit code if given. Return its error without the log lines."""
        completed = self._run(*words)
        assert completed.returncode not in (0, None), completed.stdout
        assert exit_code in (None, completed.returncode), completed.stderr
        assert "Traceback" not in completed.stderr, completed.stderr
        return completed.stderr[completed.stderr.index("Error:") :].strip()

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "streaming.cli", *words]
        return subprocess.run(
            command, env=self._environment(), capture_output=True, text=True, check=False, timeout=120
        )

    def ask(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Return HTTP status and body; status 0 and the reason if the port does not answer.

        Without `headers` the request carries the password of a protected port.
        """
        access = self.access
        address = f"{'https' if access else 'http'}://127.0.0.1:{self.port}{path}"
        sent = dict((access.headers if access else {}) if headers is None else headers)
        try:
            request = Request(address, headers=sent)  # noqa: S310 - to loopback
            with urlopen(request, timeout=30, context=access.trusting if access else None) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()
        except URLError as error:
            return 0, str(error.reason)

    def group_document(self, group_id: str) -> dict[str, Any]:
        """Return the JSON document of one group."""
        document: dict[str, Any] = json.loads(self.ask(group_address(group_id, GROUP_API))[1])
        return document

    def metrics(self) -> Samples:
        """Scrape once and return all samples."""
        return samples(self.scrape())

    def value(self, name: str, **labels: str) -> float | None:
        """Return the first value of a metric whose labels include these; None if there is none."""
        values = [value for sample, value in self._of_metric(name).items() if set(labels.items()) <= set(sample)]
        return values[0] if values else None

    def _of_metric(self, name: str) -> dict[tuple[tuple[str, str], ...], float]:
        """Scrape and parse only one metric, because parsing a whole scrape takes long."""
        lines = [line for line in self.scrape().splitlines() if line.startswith((f"{name}{{", f"{name} "))]
        return samples("\n".join(lines) + "\n").get(name, {})

    def scrape(self) -> str:
        """Return the text of one scrape. Fail with the last lines of the log if the port does not answer."""
        status, text = self.ask("/metrics")
        assert status == 200, f"/metrics returned {status}: {text}\n{self.log.read_text()[-3000:]}"
        return text

    def group_state(self, group_id: str) -> str | None:
        """Return the state that /metrics shows for a group; None if it shows none."""
        shown = self._of_metric("rebalance_monitor_group_info")
        states = [dict(sample)["state"] for sample in shown if dict(sample)["group"] == group_id]
        return states[0] if states else None

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """Return the values of a metric by one of its labels."""
        return {dict(sample)[label]: value for sample, value in self._of_metric(name).items()}

    def rows(self, table: str) -> list[Row]:
        """Return all rows of a table. The table is read again only if it has a new version."""
        path = str(self.folder / "tables" / table)
        if table not in self._tables:
            self._tables[table] = DeltaTable(path), -1, []
        handle, version, rows = self._tables[table]
        handle.update_incremental()
        if handle.version() != version:
            rows = handle.to_pyarrow_table().to_pylist()
            self._tables[table] = handle, handle.version(), rows
        return rows

    def rows_of(self, table: str, group_id: str) -> list[Row]:
        """Return the rows of one group in a table."""
        return [row for row in self.rows(table) if row["group_id"] == group_id]
