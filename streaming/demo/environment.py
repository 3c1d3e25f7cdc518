"""Runs the processes of a demo: a broker, clients and the monitor."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import msgspec

from streaming.child_process import ChildProcess
from streaming.config.environment import without_settings
from streaming.demo.figures import Figures
from streaming.demo.load import DemoError, DemoLoad
from streaming.embedded import EmbeddedBroker
from streaming.embedded.properties import LOOPBACK

_ANSWER_TIMEOUT_SECONDS = 2.0
_MONITOR_GRACE_SECONDS = 10.0


class DemoEnvironment:
    """All processes of a demo. The files of all processes are in `folder`. `stop` ends all processes."""

    def __init__(self, folder: Path, metrics_port: int) -> None:
        self.tables = folder / "tables"
        self.logs = folder / "logs"
        self.monitor_log = self.logs / "monitor.log"
        self.pages_address = f"http://{LOOPBACK}:{metrics_port}/"
        self.metrics_address = f"{self.pages_address}metrics"
        self._folder = folder
        self._metrics_port = metrics_port
        self._broker = EmbeddedBroker(folder / "broker")
        self._load = DemoLoad(self._broker.bootstrap_servers, logs=self.logs)
        self._monitor: ChildProcess | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The address of the broker. Clients outside the demo can also use this address."""
        return self._broker.bootstrap_servers

    def start(self) -> Iterator[str]:
        """Start the processes one after another. Yield a description of each step before the step starts.

        Raises RemedyError if a process cannot start.
        """
        yield "the broker to answer"
        self._broker.start()
        yield "the demo's topics and groups"
        self._load.start()
        yield "the monitor to start and catch up with __consumer_offsets"
        self._monitor = self._start_monitor()

    def check(self) -> None:
        """Raise RemedyError if a process ended unexpectedly. The error contains the reason from the process' log."""
        if self._broker.pid is None:
            self._broker.wait_until_ended()
            raise DemoError("a different process stopped the broker: restart the demo")
        if self._monitor is not None and self._monitor.exit_code is not None:
            raise DemoError(
                f"the monitor ended with code {self._monitor.exit_code}: {last_log_line(self.monitor_log)} "
                f"(log: {self.monitor_log})"
            )
        self._load.check()

    def figures(self) -> Figures | None:
        """Read the groups from the API. Return None if the monitor does not answer."""
        try:
            with closing(HTTPConnection(LOOPBACK, self._metrics_port, timeout=_ANSWER_TIMEOUT_SECONDS)) as connection:
                connection.request("GET", "/api/v1/groups")
                return msgspec.json.decode(connection.getresponse().read(), type=Figures)
        except (OSError, HTTPException, ValueError):
            return None

    def stop(self) -> None:
        """Stop the clients and the monitor at the same time. Then stop the broker."""
        if self._monitor is not None:
            self._monitor.ask_to_end()
        self._load.stop()
        if self._monitor is not None:
            self._monitor.stop(_MONITOR_GRACE_SECONDS)
        self._broker.stop()

    def _start_monitor(self) -> ChildProcess:
        config = self._folder / "monitor.toml"
        config.write_text(self._settings())
        # Settings in the environment are removed, because they belong to a different monitor.
        command = [sys.executable, "-m", "streaming.cli", "run", "--config", str(config)]
        return ChildProcess(command, self.monitor_log, without_settings(os.environ))

    def _settings(self) -> str:
        sections: dict[str, dict[str, object]] = {
            "kafka": {"bootstrap_servers": self.bootstrap_servers, "cluster": "demo"},
            "paths": {"tables": str(self.tables), "checkpoint": str(self._folder / "checkpoint")},
            # The demo has few groups, so `/metrics` can contain all details.
            "metrics": {
                "port": self._metrics_port,
                "granularity": "member",
                "compatible_with": ["kafka_exporter", "kafka_lag_exporter"],
            },
            # Without this setting, Spark would create this folder in the current folder.
            "spark.conf": {'"spark.sql.warehouse.dir"': str(self._folder / "warehouse")},
        }
        lines = []
        for name, section in sections.items():
            lines.append(f"[{name}]\n")
            # JSON strings, numbers and lists are also valid TOML.
            lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in section.items()]
        return "".join(lines)


def last_log_line(log: Path) -> str:
    """Return the last line of a log. If the monitor failed, this line contains the reason."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip().removeprefix("Error: ")[:300] if lines else "the log is empty"
