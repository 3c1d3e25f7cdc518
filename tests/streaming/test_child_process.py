"""Tests that child processes never outlive the monitor, and do not end too early."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from streaming.child_process import ChildProcess

if TYPE_CHECKING:
    from pathlib import Path

_SLEEPER = ["sleep", "600"]
_PARENT = """
import sys, time
from pathlib import Path
from streaming.child_process import ChildProcess
print(ChildProcess(["sleep", "600"], Path(sys.argv[1])).pid, flush=True)
time.sleep(600)
"""


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path):
    """`kill -9` gives the parent no chance to stop the child. The kernel stops it."""
    command = [sys.executable, "-c", _PARENT, str(tmp_path / "output")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.is_running()
        parent.kill()
    psutil.wait_procs([child], timeout=5)
    assert not child.is_running()


def test_a_child_outlives_the_thread_that_started_it(tmp_path: Path):
    """The kernel ties a child to the *thread* that forked it. The end of a worker thread must not stop the broker."""
    children: list[ChildProcess] = []
    asking = threading.Thread(target=lambda: children.append(ChildProcess(_SLEEPER, tmp_path / "output")))
    asking.start()
    asking.join()
    time.sleep(0.3)
    assert children[0].exit_code is None
    children[0].kill()


def test_the_constructor_raises_every_error_of_the_start(tmp_path: Path):
    """A command with a zero byte is a ValueError. Later, the object had no process, and each call failed."""
    with pytest.raises(ValueError, match="null byte"):
        ChildProcess(["true", "a\0b"], tmp_path / "output")


def test_a_child_that_ignores_sigterm_is_killed_after_the_grace_period(tmp_path: Path):
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
    )
    child = ChildProcess([sys.executable, "-c", stubborn], tmp_path / "output")
    while not child.output.read_bytes():
        time.sleep(0.01)
    child.stop(grace_seconds=0.2)
    assert child.exit_code == -signal.SIGKILL


def test_the_output_and_exit_code_of_a_child_can_be_read(tmp_path: Path):
    child = ChildProcess(["sh", "-c", "echo out; echo err >&2; exit 3"], tmp_path / "output")
    assert child.wait(timeout_seconds=10)
    assert child.exit_code == 3
    assert child.output.read_text() == "out\nerr\n"
