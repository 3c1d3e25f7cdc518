"""`rebalance-monitor demo` as its users run it: real processes from the command line to the Delta tables."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from deltalake import DeltaTable

from streaming.demo import DEMO_GROUPS
from streaming.demo.environment import DemoEnvironment
from streaming.demo.figures import Figures
from streaming.demo.folder import MARKER
from streaming.embedded.ports import free_port

pytestmark = pytest.mark.slow

_READY_SECONDS = 180.0
_TAG = "REBALANCE_DEMO_TEST"


class _Demo:
    """One run of the command, its output, and every process that stems from it."""

    def __init__(self, folder: Path, *arguments: str, terminal: bool = False) -> None:
        self.folder = folder
        self.tag = uuid.uuid4().hex
        self.metrics_port = free_port()
        command = [sys.executable, "-m", "streaming.cli", "demo", "--folder", str(folder)]
        if "--metrics-port" not in arguments:
            command += ["--metrics-port", str(self.metrics_port)]
        environment = {**os.environ, _TAG: self.tag, "COLUMNS": "100", "LINES": "40", "TERM": "xterm"}
        self._master, slave = os.openpty() if terminal else os.pipe()
        self.process = subprocess.Popen(
            [*command, *arguments], stdout=slave, stderr=slave, env=environment, start_new_session=True
        )
        os.close(slave)
        self._said: list[bytes] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def said(self) -> str:
        """What it wrote so far."""
        return b"".join(self._said).decode(errors="replace")

    def processes(self, words: str = "") -> list[psutil.Process]:
        """All living processes that inherited this run's mark and have these words on their command line."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(_TAG) == self.tag and words in " ".join(process.cmdline()):
                    found.append(process)
            except psutil.Error:  # noqa: PERF203 - it ended, or is none of ours
                continue
        return found

    def scrape(self) -> Figures | None:
        """What /metrics says."""
        return DemoEnvironment(self.folder, self.metrics_port).scrape()

    def until(self, what: str, ask: Callable[[], object], timeout_seconds: float = _READY_SECONDS) -> None:
        """Ask until the answer is true; fail with what the demo said."""
        deadline = time.monotonic() + timeout_seconds
        while not ask():
            assert self.process.poll() is None, f"ended while waiting for {what}: {self.said}"
            assert time.monotonic() < deadline, f"waited {timeout_seconds:g} s for {what}: {self.said}"
            time.sleep(0.5)

    def exit_code(self, timeout_seconds: float) -> int:
        """Wait for its end and read all it said."""
        code = self.process.wait(timeout_seconds)
        self._reader.join(10)
        return code

    def end(self) -> None:
        """Leave nothing behind, whatever happened."""
        self.process.kill()
        self.process.wait()
        for process in self.processes():
            process.kill()
        self._reader.join(10)
        os.close(self._master)

    def _read(self) -> None:
        try:
            while chunk := os.read(self._master, 65_536):
                self._said.append(chunk)
        except OSError:  # a terminal's way to say that nobody writes there any more
            return


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., _Demo]]:
    """Give a way to start the demo in a folder of the test's own."""
    started: list[_Demo] = []

    def start_one(*arguments: str, terminal: bool = False) -> _Demo:
        started.append(demo := _Demo(tmp_path / ".demo", *arguments, terminal=terminal))
        return demo

    yield start_one
    for demo in started:
        demo.end()


def test_a_demo_of_some_seconds_shows_every_group_fills_the_tables_and_ends_by_itself(start: Callable[..., _Demo]):
    """The whole promise of `make demo DURATION_S=...`, as a script sees it."""
    demo = start("--duration-s", "90")  # it is ready after 25, on a busy machine after 60
    started = time.monotonic()
    assert demo.exit_code(150) == 0, demo.said
    assert time.monotonic() - started >= 90
    final = demo.said[demo.said.rindex("kafka-rebalance-monitor demo") :]
    for group in DEMO_GROUPS:
        (row,) = re.findall(rf"^{group.group_id} .*$", final, re.MULTILINE)
        if group.group_protocol == "classic":  # KIP-848 shows as seen, with its lag, until its evaluation is built
            assert re.search(rf" {group.protocol} +Stable +{len(group.members)}\b", row) or "flapping" in row
        assert re.search(r"\d+( +\S.*)?$", row), f"no lag: {row}"
    assert re.search(r"demo-range .* 8–16 1\.50 +0 ", final)  # noqa: RUF001 - as the screen writes a range
    assert re.search(r"demo-idle +range +Stable +5 +2 ", final)
    assert f"http://127.0.0.1:{demo.metrics_port}/metrics" in demo.said
    assert re.search(rf"^pages +http://127\.0\.0\.1:{demo.metrics_port}/ *$", demo.said, re.MULTILINE)
    assert _rows(demo, "group_generations") >= len(DEMO_GROUPS) - 1
    for table in ("assignment_drift", "assignment_imbalance", "group_lag"):
        assert _rows(demo, table) > 0, table
    assert demo.processes() == []
    assert (demo.folder / MARKER).exists()


def test_ctrl_c_on_a_terminal_ends_all_of_it_within_seconds_and_a_second_demo_meanwhile_is_refused(
    start: Callable[..., _Demo],
):
    demo = start(terminal=True)
    marker = demo.folder / MARKER
    demo.until("its claim on the folder", lambda: marker.exists() and str(demo.process.pid) in marker.read_text())
    second = start()
    assert second.exit_code(60) == 1
    assert re.search(rf"another demo runs in \S+ \(process {demo.process.pid}\): stop it", _words(second.said))
    demo.until("ready", lambda: (figures := demo.scrape()) and figures.ready)
    demo.until("the table", lambda: "partitions" in demo.said, 10)
    kept = DemoEnvironment(demo.folder, demo.metrics_port).monitor_log
    os.killpg(demo.process.pid, signal.SIGINT)  # as the terminal does it: to all of the foreground group
    os.kill(demo.process.pid, signal.SIGINT)  # and once more: `timeout -s INT` signals the command and its group
    assert demo.exit_code(40) == 0, demo.said
    assert demo.said.rstrip().endswith("until the next demo")
    assert "Traceback" not in demo.said
    assert kept.exists()
    assert demo.processes() == []


def test_nothing_is_left_of_a_demo_that_is_killed_and_the_next_one_may_start(start: Callable[..., _Demo]):
    """`kill -9` gives us no chance: the kernel ends our children, and Spark's JVM ends with its Python."""
    demo = start()
    demo.until("Spark", lambda: demo.processes("org.apache.spark"))
    assert len(demo.processes("kafka.Kafka")) == 1
    demo.process.kill()
    deadline = time.monotonic() + 20
    while (left := demo.processes()) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left == []
    following = start()
    following.until("the broker", lambda: "waiting for the demo's topics" in following.said)
    following.process.terminate()  # to the command alone, as a service would
    assert following.exit_code(40) == 128 + signal.SIGINT
    assert "Traceback" not in following.said
    assert following.processes() == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(
            "run --config", r"Error: the monitor ended with code -9: .* \(log: \S+/monitor\.log\)", id="monitor"
        ),
        pytest.param("kafka.Kafka", r"Error: the broker ended with code -9: .* \(log: \S+/broker\.log\)", id="broker"),
    ],
)
def test_a_part_that_dies_is_said_in_one_line_and_the_rest_is_stopped(
    start: Callable[..., _Demo], words: str, says: str
):
    demo = start()
    demo.until("the monitor", lambda: demo.processes("run --config"))
    for process in demo.processes(words):
        process.kill()
    assert demo.exit_code(60) == 1
    assert re.search(says, demo.said)
    assert "Traceback" not in demo.said
    assert demo.processes() == []


def test_a_monitor_that_is_not_ready_in_time_is_a_failure_that_names_its_log(start: Callable[..., _Demo]):
    """A script must not take a demo that showed nothing for a success."""
    demo = start("--duration-s", "1")
    assert demo.exit_code(90) == 1
    assert re.search(
        r"not ready in time: read \S+/logs/monitor\.log, or choose a longer --duration-s", _words(demo.said)
    )
    assert demo.processes() == []


def test_a_taken_metrics_port_is_one_line_with_the_remedy_before_anything_is_started(start: Callable[..., _Demo]):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        demo = start("--metrics-port", str(port))
        assert demo.exit_code(60) == 1
    assert demo.said == (
        f"Error: port {port} is in use: stop the process that listens there (ss -ltnp), or choose a different port with"
        " --metrics-port\n"
    )


def _words(said: str) -> str:
    return " ".join(said.split())


def _rows(demo: _Demo, table: str) -> int:
    return int(DeltaTable(demo.folder / "tables" / table).to_pyarrow_table().num_rows)
