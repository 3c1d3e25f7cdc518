"""Tests that a measured process is measured with its children, and ends with its block."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.bench.fill import BenchError
from tests.bench.process import Cost, MeasuredProcess, ProcessTreeMeter, memory_bytes, monitor_environment, process_tree

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
PARENT_OF_TWO = """
import multiprocessing, time
shared = bytearray(b"x") * (64 << 20)
for _ in range(2):
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,)).start()
time.sleep(60)
"""


BUSY_CHILD = """
import multiprocessing, time
def work():
    while time.process_time() < 1:
        pass
child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.join()
time.sleep(60)
"""


def _wait_for(condition: object) -> None:
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:  # type: ignore[operator]
        time.sleep(0.05)


def test_memory_that_forked_children_share_counts_once(tmp_path: Path) -> None:
    """PySpark forks its workers. The sum of their resident sizes would count every shared page once per worker."""
    with MeasuredProcess([sys.executable, "-c", PARENT_OF_TWO], tmp_path, os.environ) as process:
        pid = process._process.pid
        _wait_for(lambda: len(psutil.Process(pid).children(recursive=True)) == 2)
        tree = process_tree(pid)
        assert sum(one.memory_info().rss for one in tree) > 3 * 64 * MIB
        assert 64 * MIB < memory_bytes(tree) < 128 * MIB
        assert process.cost().peak_memory_bytes > 64 * MIB
    assert not [one for one in tree if one.is_running()]


def test_a_process_that_has_ended_has_no_cost() -> None:
    ended = psutil.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert process_tree(ended.pid) == []
    assert ProcessTreeMeter(ended.pid).cost() == Cost(0, 0.0)


def test_processor_time_of_a_child_that_has_ended_still_counts(tmp_path: Path) -> None:
    """Spark ends idle Python workers while the monitor runs. Their processor time belongs to the monitor."""
    with MeasuredProcess([sys.executable, "-c", BUSY_CHILD], tmp_path, os.environ) as process:
        pid = process._process.pid
        _wait_for(lambda: process.cost().cpu_seconds > 0.3)
        _wait_for(lambda: len(process_tree(pid)) == 1)
        (parent,) = process_tree(pid)
        assert parent.cpu_times().user + parent.cpu_times().system < 0.3 < process.cost().cpu_seconds


def test_a_process_that_ends_by_itself_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no broker answers')"]
    with MeasuredProcess(command, tmp_path, os.environ) as process:
        process._process.wait()
        with pytest.raises(BenchError, match=r"code 1: no broker answers \(log: "):
            process.check()


def test_the_monitor_gets_its_own_folder_and_keeps_the_callers_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`REBALANCE_MONITOR_SPARK__DRIVER_MEMORY=2g make bench` must measure a monitor with this setting."""
    monkeypatch.setenv("REBALANCE_MONITOR_SPARK__DRIVER_MEMORY", "2g")
    monkeypatch.setenv("REBALANCE_MONITOR_PATHS__CHECKPOINT", "/somewhere/else")
    environment = monitor_environment("127.0.0.1:9092", tmp_path, 1234)
    assert environment["REBALANCE_MONITOR_SPARK__DRIVER_MEMORY"] == "2g"
    assert environment["REBALANCE_MONITOR_PATHS__CHECKPOINT"] == str(tmp_path / "checkpoint")
    assert environment["REBALANCE_MONITOR_METRICS__PORT"] == "1234"
