"""Test `rebalance-monitor demo` as its users run it, with real processes and Delta tables."""

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

from streaming.demo.environment import DemoEnvironment
from streaming.demo.figures import Figures
from streaming.demo.folder import MARKER
from streaming.demo.groups import DEMO_GROUPS
from streaming.embedded.ports import free_port
from tests.conftest import C1_ONLY

pytestmark = pytest.mark.slow

_READY_SECONDS = 180.0
_TAG = "REBALANCE_DEMO_TEST"


class _Demo:
    """One run of the command, its output, and all its child processes."""

    def __init__(self, folder: Path, *arguments: str, terminal: bool = False) -> None:
        self.folder = folder
        self.tag = uuid.uuid4().hex
        self.metrics_port = free_port()
        command = [sys.executable, "-m", "streaming.cli", "demo", "--folder", str(folder)]
        if "--metrics-port" not in arguments:
            command += ["--metrics-port", str(self.metrics_port)]
        terminal_settings = {"COLUMNS": "100", "LINES": "40", "TERM": "xterm"}
        # The demo removes the settings of the tests from the environment of its monitor.
        environment = {**os.environ, **terminal_settings, _TAG: self.tag, "JDK_JAVA_OPTIONS": C1_ONLY}
        self._master, slave = os.openpty() if terminal else os.pipe()
        self.process = subprocess.Popen(
            [*command, *arguments], stdout=slave, stderr=slave, env=environment, start_new_session=True
        )
        os.close(slave)
        self._chunks: list[bytes] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def output(self) -> str:
        """Return everything that the command has written so far."""
        return b"".join(self._chunks).decode(errors="replace")

    def processes(self, words: str = "") -> list[psutil.Process]:
        """Return all running processes of this run that have these words on their command line."""
        running = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(_TAG) == self.tag and words in " ".join(process.cmdline()):
                    running.append(process)
            except psutil.Error:  # noqa: PERF203 - the process has ended, or belongs to a different user
                continue
        return running

    def figures(self) -> Figures | None:
        """Return the figures of the API; None if the monitor does not answer."""
        return DemoEnvironment(self.folder, self.metrics_port).figures()

    def until(self, what: str, ask: Callable[[], object], timeout_seconds: float = _READY_SECONDS) -> None:
        """Call `ask` until its answer is true. After the timeout fail with the demo's output."""
        deadline = time.monotonic() + timeout_seconds
        while not ask():
            assert self.process.poll() is None, f"ended while waiting for {what}: {self.output}"
            assert time.monotonic() < deadline, f"waited {timeout_seconds:g} s for {what}: {self.output}"
            time.sleep(0.5)

    def exit_code(self, timeout_seconds: float) -> int:
        """Wait for the end, read all output, and return the exit code."""
        code = self.process.wait(timeout_seconds)
        self._reader.join(10)
        return code

    def end(self) -> None:
        """Kill all processes of this run."""
        self.process.kill()
        self.process.wait()
        for process in self.processes():
            process.kill()
        self._reader.join(10)
        os.close(self._master)

    def _read(self) -> None:
        try:
            while chunk := os.read(self._master, 65_536):
                self._chunks.append(chunk)
        except OSError:  # the terminal has no writer any more
            return


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., _Demo]]:
    """Return a function that starts the demo in the test's folder."""
    started: list[_Demo] = []

    def start_one(*arguments: str, terminal: bool = False) -> _Demo:
        started.append(demo := _Demo(tmp_path / ".demo", *arguments, terminal=terminal))
        return demo

    yield start_one
    for demo in started:
        demo.end()


def test_a_demo_with_a_duration_shows_every_group_fills_the_tables_and_ends_by_itself(start: Callable[..., _Demo]):
    """A script uses the demo in this way: `make demo DURATION_S=...`."""
    demo = start("--duration-s", "90")  # the demo is ready after 25 s, on a busy machine after 60 s
    started = time.monotonic()
    assert demo.exit_code(150) == 0, demo.output
    assert time.monotonic() - started >= 90
    final = demo.output[demo.output.rindex("kafka-rebalance-monitor demo") :]
    for group in DEMO_GROUPS:
        (row,) = re.findall(rf"^{group.group_id} .*$", final, re.MULTILINE)
        if group.protocol and group.group_protocol == "classic":  # a KIP-848 group may show only its lag
            assert re.search(rf" {group.protocol} +Stable +{len(group.members)}\b", row) or "flapping" in row
        assert re.search(r"\d+( +\S.*)?$", row), f"no lag: {row}"
    assert re.search(r"demo-range .* 16 +5 +0 ", final)
    assert re.search(r"demo-idle +range +Stable +5 +2 ", final)
    assert f"http://127.0.0.1:{demo.metrics_port}/metrics" in demo.output
    assert re.search(rf"^pages +http://127\.0\.0\.1:{demo.metrics_port}/ *$", demo.output, re.MULTILINE)
    assert _rows(demo, "group_generations") >= len(DEMO_GROUPS) - 1
    for table in ("assignment_drift", "assignment_imbalance", "group_lag"):
        assert _rows(demo, table) > 0, table
    assert demo.processes() == []
    assert (demo.folder / MARKER).exists()


def test_ctrl_c_ends_all_processes_within_seconds_and_a_second_demo_is_refused(
    start: Callable[..., _Demo],
):
    demo = start(terminal=True)
    marker = demo.folder / MARKER
    demo.until("its claim on the folder", lambda: marker.exists() and str(demo.process.pid) in marker.read_text())
    second = start()
    assert second.exit_code(60) == 1
    assert re.search(
        rf"another demo runs in \S+ \(process {demo.process.pid}\): stop the other demo", _words(second.output)
    )
    demo.until("ready", lambda: (figures := demo.figures()) and figures.ready)
    demo.until("the table", lambda: "partitions" in demo.output, 10)
    kept = DemoEnvironment(demo.folder, demo.metrics_port).monitor_log
    os.killpg(demo.process.pid, signal.SIGINT)  # as the terminal does: to the whole foreground process group
    os.kill(demo.process.pid, signal.SIGINT)  # a second signal: `timeout -s INT` signals the command and its group
    assert demo.exit_code(40) == 0, demo.output
    assert _words(demo.output).endswith("until the next demo starts")
    assert "Traceback" not in demo.output
    assert kept.exists()
    assert demo.processes() == []


def test_a_killed_demo_leaves_no_process_and_the_next_demo_can_start(start: Callable[..., _Demo]):
    """After `kill -9` the kernel ends the demo's children, and Spark's JVM ends with its Python process."""
    demo = start()
    demo.until("Spark", lambda: demo.processes("org.apache.spark"))
    assert len(demo.processes("kafka.Kafka")) == 1
    demo.process.kill()
    deadline = time.monotonic() + 20
    while (left := demo.processes()) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left == []
    following = start()
    following.until("the broker", lambda: "waiting for the demo's topics" in following.output)
    following.process.terminate()  # only to the command, as a service manager does
    assert following.exit_code(40) == 128 + signal.SIGINT
    assert "Traceback" not in following.output
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
def test_a_process_that_ends_is_an_error_in_one_line_and_the_others_are_stopped(
    start: Callable[..., _Demo], words: str, says: str
):
    demo = start()
    demo.until("the monitor", lambda: demo.processes("run --config"))
    for process in demo.processes(words):
        process.kill()
    assert demo.exit_code(60) == 1
    assert re.search(says, demo.output)
    assert "Traceback" not in demo.output
    assert demo.processes() == []


def test_a_monitor_that_is_not_ready_in_time_is_a_failure_that_names_its_log(start: Callable[..., _Demo]):
    """A demo that showed nothing must not look successful to a script."""
    demo = start("--duration-s", "1")
    assert demo.exit_code(90) == 1
    assert re.search(
        r"not ready in time: read \S+/logs/monitor\.log, or choose a longer --duration-s", _words(demo.output)
    )
    assert demo.processes() == []


def test_a_metrics_port_in_use_is_an_error_in_one_line_before_anything_is_started(start: Callable[..., _Demo]):
    """The command cleared the folder of the last demo before it checked the port, or left an empty folder."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        demo = start("--metrics-port", str(port))
        assert demo.exit_code(60) == 1
    assert demo.output == (
        f"Error: port {port} is in use: stop the process that listens there (ss -ltnp), or choose a different port with"
        " --metrics-port\n"
    )
    assert not demo.folder.exists()


def _words(text: str) -> str:
    return " ".join(text.split())


def _rows(demo: _Demo, table: str) -> int:
    return int(DeltaTable(demo.folder / "tables" / table).to_pyarrow_table().num_rows)
