"""The monitor under `spark-submit`, as the Spark operator and Spark's standalone clusters start it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pyspark
import pytest

from streaming.child_process import ChildProcess
from streaming.embedded import EmbeddedBroker
from streaming.embedded.ports import free_port
from streaming.jars import resolve
from tests.end_to_end.conftest import Group, create_topics
from tests.end_to_end.monitor_process import MonitorProcess, until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(SPARK_HOME)}


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Spark's own cluster on this machine: a master, and a worker of two cores."""
    address = f"spark://127.0.0.1:{free_port()}"
    port = address.rpartition(":")[2]
    master = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0")
    worker = ("org.apache.spark.deploy.worker.Worker", "--cores", "2", "--memory", "2g", "--webui-port", "0")
    with ExitStack() as stack:
        for words in (master, (*worker, "--work-dir", str(tmp_path / "work"), address)):
            log = tmp_path / f"{words[0].rpartition('.')[2]}.log"
            started = ChildProcess([str(SPARK_HOME / "bin" / "spark-class"), *words], log, {**os.environ, **LOOPBACK})
            stack.callback(started.kill)
        until("the worker", lambda: "Registering worker" in (tmp_path / "Master.log").read_text())
        yield address


@pytest.fixture
def submitted(
    master: str, broker: EmbeddedBroker, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MonitorProcess]:
    """Submitted as the image's manifest does: jars by the class path, and nothing else of Spark's from the settings."""
    jars = ":".join(map(str, resolve("spark")))
    for name, value in {**LOOPBACK, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}.items():
        monkeypatch.setenv(name, value)
    command = [
        "setsid",  # a process group of its own: `tini -g` signals the JVM and the driver's Python in it alike
        *(str(SPARK_HOME / "bin" / "spark-submit"), "--master", master),
        *("--conf", f"spark.driver.extraClassPath={jars}", "--conf", f"spark.executor.extraClassPath={jars}"),
        *("--conf", "spark.executor.memory=1g", "--conf", f"spark.executorEnv.PYTHONPATH={ROOT}"),
        *(str(ROOT / "deploy" / "image" / "submitted.py"), "run", "--log-level", "DEBUG"),
    ]
    monitor = MonitorProcess(
        broker.bootstrap_servers, folder, environment={"SPARK__MASTER": "local[1]"}, command=command
    )
    yield monitor.start()
    if monitor.process is not None and monitor.process.poll() is None:
        os.killpg(monitor.process.pid, signal.SIGKILL)


def test_the_job_runs_on_the_executors_of_the_master_it_was_submitted_to(
    broker: EmbeddedBroker, submitted: MonitorProcess, name: str
):
    """Its settings say local[1]: were that to hold, no executor would ever see a record."""
    create_topics(broker, {name: 4})
    group = Group(broker.bootstrap_servers, name)
    group.join([name])
    submitted.wait_until_ready()
    until("the group", lambda: submitted.value("rebalance_monitor_group_members", group=name) == 1)
    until("its lag", lambda: submitted.value("rebalance_monitor_group_lag", group=name) == 0)
    assert _what_python_workers_work_for() == {"org.apache.spark.executor.CoarseGrainedExecutorBackend"}
    group.leave_all()
    assert submitted.process is not None
    os.killpg(submitted.process.pid, signal.SIGTERM)
    submitted.process.wait(60)
    assert "Traceback" not in submitted.log.read_text()


def _what_python_workers_work_for() -> set[str]:
    """The JVMs that have started Spark's Python daemon on this machine below this test."""
    below_us = psutil.Process().children(recursive=True)
    daemons = [process for process in below_us if "streaming.spark.daemon" in process.cmdline()]
    return {word for daemon in daemons for word in daemon.parent().cmdline() if word.startswith("org.apache.spark.")}
