"""The monitor as its users run it: a process of its own, asked over HTTP, killed without mercy."""

from __future__ import annotations

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

READY_SECONDS = 180.0

Answer = TypeVar("Answer")
Row = dict[str, Any]
Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]


def until(what: str, ask: Callable[[], Answer], timeout_seconds: float = 60.0) -> Answer:
    """Ask until the answer is true, or fail saying what was waited for and what the last answer was."""
    deadline = time.monotonic() + timeout_seconds
    while not (answer := ask()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_seconds:g} s for {what}; last answer: {answer!r}")
        time.sleep(0.3)
    return answer


def samples(text: str) -> Samples:
    """Values by sample name and sorted labels."""
    scraped: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            scraped.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return scraped


STARTED: list[MonitorProcess] = []
"""Every monitor that was started, in order: whoever fails must not leave one to slow all others down."""


@dataclass(frozen=True)
class Access:
    """What a guarded port asks for: whom it must be certified by, and the header that lets somebody in."""

    trusting: ssl.SSLContext
    headers: Mapping[str, str]


@dataclass
class MonitorProcess:
    """`rebalance-monitor run` on a folder of its own; start and kill it as often as you like."""

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
        """What it said, over all starts."""
        return self.folder / "monitor.log"

    def start(self) -> MonitorProcess:
        """Start it without waiting."""
        self.folder.mkdir(parents=True, exist_ok=True)
        said_before = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                with_parent_death_signal(self.command), stdout=log, stderr=log, env=self._environment()
            )
        STARTED.append(self)
        self.port = until("the port", lambda: self._port_said_after(said_before), 30)
        return self

    def _environment(self) -> dict[str, str]:
        mine = {
            "KAFKA__BOOTSTRAP_SERVERS": self.bootstrap_servers,
            "KAFKA__CONNECT_TIMEOUT_SECONDS": "10",
            "PATHS__CHECKPOINT": str(self.folder / "checkpoint"),
            "PATHS__TABLES": str(self.folder / "tables"),
            "METRICS__PORT": "0",
            "SOURCE__TRIGGER_SECONDS": "1",
            "SAMPLING__INTERVAL_SECONDS": "1",
            "SAMPLING__LAG_TABLE_SECONDS": "1",
        }
        prefixed = {f"REBALANCE_MONITOR_{name}": value for name, value in {**mine, **self.environment}.items()}
        return {**os.environ, **prefixed}

    def _port_said_after(self, position: int) -> int:
        if self.process is not None and self.process.poll() is not None:
            raise AssertionError(f"the monitor ended with {self.process.returncode}:\n{self.log.read_text()[-3000:]}")
        said = self.log.read_bytes()[position:].decode()
        return int(said.split("/metrics")[0].rpartition(":")[2]) if "/metrics" in said else 0

    def wait_until_ready(self) -> MonitorProcess:
        """Wait until it shows the present."""
        try:
            until("ready", lambda: self.alive() and self.value("rebalance_monitor_ready") == 1, READY_SECONDS)
        except AssertionError as never:
            raise AssertionError(f"{never}\n{self.log.read_text()[-3000:]}") from None
        return self

    def alive(self) -> bool:
        """Fail at once if it ended."""
        if self.process is None or self.process.poll() is not None:
            raise AssertionError(f"the monitor ended:\n{self.log.read_text()[-3000:]}")
        return True

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let it stand still, Spark and all, and go on in the end."""
        assert self.process is not None
        parent = psutil.Process(self.process.pid)
        still = [parent, *parent.children(recursive=True)]
        try:
            for process in still:
                with suppress(psutil.NoSuchProcess):  # Spark ends idle workers
                    process.suspend()
            yield
        finally:
            for process in still:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    def kill(self) -> None:
        """Kill it with -9 and wait for it to be gone."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Ask it to stop; its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        if self.process is None:
            return 0
        self.process.send_signal(how)
        code = self.process.wait(60)
        self.process = None
        return code

    def run_command(self, *words: str) -> str:
        """Run another command of the program with the same settings; its output. Fails if it fails."""
        ran = self._ran(*words)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def refused_command(self, *words: str, exit_code: int | None = None) -> str:
        """Run a command that must be refused, with that exit code; the error it gives, without the log's lines."""
        ran = self._ran(*words)
        assert ran.returncode not in (0, None), ran.stdout
        assert exit_code in (None, ran.returncode), ran.stderr
        assert "Traceback" not in ran.stderr, ran.stderr
        return ran.stderr[ran.stderr.index("Error:") :].strip()

    def _ran(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "streaming.cli", *words]
        return subprocess.run(
            command, env=self._environment(), capture_output=True, text=True, check=False, timeout=120
        )

    def ask(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
        """The status and the body, 0 where nobody answers; a guarded port gets what it asks for, or these headers."""
        guarded = self.access
        address = f"{'https' if guarded else 'http'}://127.0.0.1:{self.port}{path}"
        sent = dict((guarded.headers if guarded else {}) if headers is None else headers)
        try:
            request = Request(address, headers=sent)  # noqa: S310 - to loopback
            with urlopen(request, timeout=30, context=guarded.trusting if guarded else None) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()
        except URLError:
            return 0, ""

    def metrics(self) -> Samples:
        """One scrape."""
        return samples(self.scrape())

    def value(self, name: str, **labels: str) -> float | None:
        """The one value of a metric whose labels include these; None where there is none."""
        found = [value for sample, value in self._of_metric(name).items() if set(labels.items()) <= set(sample)]
        return found[0] if found else None

    def _of_metric(self, name: str) -> dict[tuple[tuple[str, str], ...], float]:
        """One scrape's values of one metric: a whole one takes long to parse."""
        lines = [line for line in self.scrape().splitlines() if line.startswith((f"{name}{{", f"{name} "))]
        return samples("\n".join(lines) + "\n").get(name, {})

    def scrape(self) -> str:
        """The text of one scrape."""
        status, text = self.ask("/metrics")
        if status != 200:
            raise URLError(f"/metrics answered {status or 'nothing'}")
        return text

    def by_state(self, group_id: str) -> str | None:
        """The state shown for a group."""
        shown = self._of_metric("rebalance_monitor_group_state")
        states = [dict(sample)["state"] for sample in shown if dict(sample)["group"] == group_id]
        return states[0] if states else None

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """Values of a metric by one of its labels."""
        return {dict(sample)[label]: value for sample, value in self._of_metric(name).items()}

    def rows(self, table: str) -> list[Row]:
        """All rows of a table, as a query sees them; read again only where the table has a new version."""
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
        """A table's rows of one group."""
        return [row for row in self.rows(table) if row["group_id"] == group_id]
