"""What a demo consists of: a broker, clients and the monitor, each a process of its own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType

from typing_extensions import Self

from streaming.child_process import ChildProcess
from streaming.config.environment import without_settings
from streaming.demo.figures import Figures, read_figures
from streaming.demo.load import DemoError, DemoLoad
from streaming.embedded import EmbeddedBroker
from streaming.embedded.properties import LOOPBACK

_SCRAPE_TIMEOUT_SECONDS = 2.0
_MONITOR_GRACE_SECONDS = 10.0
_NO_ANSWER = (OSError, HTTPException, ValueError)


class Stage:
    """Everything that a demo starts, in a folder that `demo_folder` gave. Leaving it stops whatever runs."""

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
        """The broker's address, for clients of your own."""
        return self._broker.bootstrap_servers

    def start(self) -> Iterator[str]:
        """Start one thing after another, each time saying first what is waited for. Raises RemedyError if one can't."""
        yield "the broker to answer"
        self._broker.start()
        yield "the demo's topics and groups"
        self._load.start()
        yield "the monitor to start and catch up with __consumer_offsets"
        self._monitor = self._start_monitor()

    def check(self) -> None:
        """Raise a RemedyError, with the reason as its log tells it, if something ended by itself."""
        if self._broker.pid is None:
            self._broker.wait_until_ended()
            raise DemoError("the broker was stopped from elsewhere: start the demo again")
        if self._monitor is not None and self._monitor.exit_code is not None:
            raise DemoError(
                f"the monitor ended with code {self._monitor.exit_code}: {last_words(self.monitor_log)} "
                f"(log: {self.monitor_log})"
            )
        self._load.check()

    def scrape(self) -> Figures | None:
        """What /metrics says now; None if it doesn't answer."""
        try:
            with closing(HTTPConnection(LOOPBACK, self._metrics_port, timeout=_SCRAPE_TIMEOUT_SECONDS)) as connection:
                connection.request("GET", "/metrics")
                return read_figures(connection.getresponse().read().decode())
        except _NO_ANSWER:
            return None

    def __enter__(self) -> Self:
        """Start nothing yet: `start` tells what it waits for."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop all that runs: clients and monitor side by side, the broker they need last."""
        if self._monitor is not None:
            self._monitor.ask_to_end()
        self._load.stop()
        if self._monitor is not None:
            self._monitor.stop(_MONITOR_GRACE_SECONDS)
        self._broker.stop()

    def _start_monitor(self) -> ChildProcess:
        """Run it as a user would: `rebalance-monitor run --config monitor.toml`."""
        config = self._folder / "monitor.toml"
        config.write_text(self._settings())
        # The environment wins over the file: what is set there is meant for another monitor.
        return ChildProcess(
            [sys.executable, "-m", "streaming.cli", "run", "--config", str(config)],
            self.monitor_log,
            without_settings(os.environ),
        )

    def _settings(self) -> str:
        sections: dict[str, dict[str, object]] = {
            "kafka": {"bootstrap_servers": self.bootstrap_servers, "cluster": "demo"},
            "paths": {"tables": str(self.tables), "checkpoint": str(self._folder / "checkpoint")},
            # Groups are few: show all there is to see of them.
            "metrics": {
                "port": self._metrics_port,
                "granularity": "member",
                "compatible_with": ["kafka_exporter", "kafka_lag_exporter"],
            },
            # Else Spark makes one in the folder that the demo was started from.
            "spark.conf": {'"spark.sql.warehouse.dir"': str(self._folder / "warehouse")},
        }
        return "\n".join(
            f"[{name}]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in section.items())
            for name, section in sections.items()
        )


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)  # a JSON string, number or list of these is TOML's, too


def last_words(log: Path) -> str:
    """The last line of a log, where a command of ours says why it ends."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip().removeprefix("Error: ")[:300] if lines else "its log is empty"
