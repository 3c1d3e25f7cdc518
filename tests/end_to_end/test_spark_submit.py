"""Test the monitor under `spark-submit`, as the Spark operator and Spark's standalone clusters start it."""

from __future__ import annotations

import json
import os
import signal
import sys
import urllib.request
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pyspark
import pytest
from kafka.errors import KafkaError

from streaming.child_process import ChildProcess
from streaming.embedded import EmbeddedBroker
from streaming.embedded.ports import free_port
from streaming.errors import STAYS
from streaming.jars import resolve
from tests.conftest import C1_ONLY
from tests.end_to_end.conftest import Group, create_topics
from tests.end_to_end.kafka_reference import KafkaReference
from tests.end_to_end.monitor_process import MonitorProcess, until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
SUBMITTED = str(ROOT / "deploy" / "image" / "submitted.py")
WORKERS = ("Worker-1", "Worker-2")
JVM_OPTIONS = f"{C1_ONLY} -XX:+UseSerialGC"
JVMS = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(SPARK_HOME), "JDK_JAVA_OPTIONS": JVM_OPTIONS}
"""The environment of master, workers, executors, driver. `spark-submit` ignores the options of `tests/conftest.py`."""


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Run a standalone Spark cluster on this machine: a master, and two workers with one core each."""
    address = f"spark://127.0.0.1:{free_port()}"
    port = address.rpartition(":")[2]
    arguments = {"Master": ("--host", "127.0.0.1", "--port", port, "--webui-port", "0")}
    for worker in WORKERS:
        folder = str(tmp_path / worker)
        arguments[worker] = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", folder, address)
    with ExitStack() as stack:
        for name, options in arguments.items():
            kind = name.partition("-")[0]
            command = [
                str(SPARK_HOME / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{kind.lower()}.{kind}",
                *options,
            ]
            started = ChildProcess(command, tmp_path / f"{name}.log", {**os.environ, **JVMS})
            stack.callback(started.kill)
        log = tmp_path / "Master.log"
        until("the workers", lambda: log.read_text().count("Registering worker") == len(WORKERS))
        yield address


@pytest.fixture
def spark_submit(monkeypatch: pytest.MonkeyPatch) -> Sequence[str]:
    """Return the start of a `spark-submit` command, and set its environment."""
    for name, value in {**JVMS, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}.items():
        monkeypatch.setenv(name, value)
    return (str(SPARK_HOME / "bin" / "spark-submit"),)


@pytest.fixture
def submitted(
    master: str, broker: EmbeddedBroker, folder: Path, spark_submit: Sequence[str]
) -> Iterator[MonitorProcess]:
    """Return a monitor that is submitted as in the image's manifest: the jars are on the class path.

    Its settings contain only Spark's UI port and a master that must be ignored.
    """
    jars = ":".join(map(str, resolve("spark")))
    command = [
        "setsid",  # its own process group: `tini -g` signals both the JVM and the driver's Python
        *(*spark_submit, "--master", master),
        *("--conf", f"spark.driver.extraClassPath={jars}", "--conf", f"spark.executor.extraClassPath={jars}"),
        *("--conf", "spark.executor.memory=1g", "--conf", f"spark.executorEnv.PYTHONPATH={ROOT}"),
        *(SUBMITTED, "run", "--log-level", "DEBUG"),
    ]
    conf = json.dumps({"spark.ui.enabled": "true", "spark.ui.port": str(free_port())})
    settings = {"SPARK__MASTER": "local[1]", "SPARK__CONF": conf}
    monitor = MonitorProcess(broker.bootstrap_servers, folder, environment=settings, command=command)
    yield monitor
    if monitor.process is not None and monitor.process.poll() is None:
        os.killpg(monitor.process.pid, signal.SIGKILL)


def test_two_workers_of_a_spark_master_write_the_same_rows_as_one_machine(
    broker: EmbeddedBroker, submitted: MonitorProcess, tmp_path: Path, name: str
):
    """The master of `spark-submit` overrides `local[1]` in the settings. Otherwise no executor would get a record.

    Some groups have ended before the monitor starts, and one lives while it runs. Then a second monitor reads the same
    log with local[2] (rule 3).
    """
    create_topics(broker, {name: 4})
    before, living, permanent = [f"{name}-{number}" for number in range(2)], f"{name}-living", f"{name}-permanent"
    for group_id in before:
        with _members(broker, group_id, name):
            pass
    with _members(broker, permanent, name):
        submitted.start().wait_until_ready()
        with _members(broker, living, name):
            until("the group", lambda: submitted.value("rebalance_monitor_group_members", group=living) == 2)
            until("its lag", lambda: submitted.value("rebalance_monitor_group_lag", group=living) == 0)
            assert _executors_with_python() == _executors_with_tasks(submitted)
        ended = [*before, living]
        until("the end", lambda: [submitted.group_state(group_id) for group_id in ended] == ["Empty"] * len(ended))
        emptied = "'kind': 'became_empty'"  # the last row of each group; metrics change before rows are written
        until("its rows", lambda: sum(emptied in row for row in _rows(submitted, "rebalances", ended)) == len(ended))
        counts = _counts(submitted, ended)
        assert submitted.process is not None
        os.killpg(submitted.process.pid, signal.SIGTERM)
        submitted.process.wait(60)
        assert "Traceback" not in submitted.log.read_text()
        locally = MonitorProcess(broker.bootstrap_servers, tmp_path / "local").start().wait_until_ready()
        until("the same counts", lambda: counts and _counts(locally, ended) == counts)
        # A verdict waits for metadata until a newer record arrives. A later reader reads that record at once, so some
        # verdicts that were evaluated live are unknown for it.
        _agree(submitted, locally, ("group_generations", "rebalances", "commit_gaps"), ended)
        _agree(submitted, locally, ("assignment_drift", "assignment_imbalance"), [*before, permanent])
        assert any("'verdict': 'match'" in row for row in _rows(locally, "assignment_drift", [permanent]))
        assert locally.stop() == 0


def test_without_the_jars_on_the_class_path_the_start_fails_and_names_the_two_options(
    broker: EmbeddedBroker, folder: Path, spark_submit: Sequence[str], name: str
):
    """deploy/README.md did not have the options. `run` repeated "Failed to find data source: kafka" forever."""
    create_topics(broker, {name: 4})
    with _members(broker, name, name):  # the monitor starts Spark only if __consumer_offsets exists
        pass
    command = [*spark_submit, "--master", "local[1]", SUBMITTED, "run"]
    monitor = MonitorProcess(broker.bootstrap_servers, folder, command=command).start()
    assert monitor.process is not None
    assert monitor.process.wait(60) == STAYS
    assert "Error: the monitor's jars are not on Spark's class path: call `spark-submit`" in monitor.log.read_text()


def _agree(submitted: MonitorProcess, locally: MonitorProcess, tables: Sequence[str], groups: Collection[str]) -> None:
    """Wait until the tables of both monitors have the same rows for the groups, at least one for each group."""
    for table in tables:
        rows = _rows(submitted, table, groups)
        assert {group_id for row in rows for group_id in groups if group_id in row} == set(groups), table
        until(f"the same {table}", lambda: _rows(locally, table, groups) == rows)  # noqa: B023 - called in its iteration


@contextmanager
def _members(broker: EmbeddedBroker, group_id: str, topic: str) -> Iterator[None]:
    """Keep two members that have committed in the group inside the block."""
    group, kafka_reference = Group(broker.bootstrap_servers, group_id), KafkaReference(broker.bootstrap_servers)
    try:
        group.join([topic])
        group.join([topic])
        until("two members and all commits", lambda: _members_and_commits(kafka_reference, group_id) == (2, 4))
        yield
    finally:
        group.leave_all()
        kafka_reference.close()


def _members_and_commits(kafka_reference: KafkaReference, group_id: str) -> tuple[int, int]:
    with suppress(KafkaError):  # until the group's coordinator is available
        return len(kafka_reference.group(group_id)["members"]), len(kafka_reference.committed(group_id))
    return 0, 0


def _rows(monitor: MonitorProcess, table: str, groups: Collection[str]) -> list[str]:
    """Return the rows that come from records only, sorted and without times of samples."""
    rows = [row for row in monitor.rows(table) if row["group_id"] in groups and row.get("sampled_time") is None]
    omitted = {"metadata_sampled_time", "sampled_time"}
    return sorted(str({name: value for name, value in row.items() if name not in omitted}) for row in rows)


def _counts(monitor: MonitorProcess, groups: Collection[str]) -> Mapping[object, float]:
    """Return all counters and histograms of the groups."""
    return {
        (name, labels): value
        for name, samples in monitor.metrics().items()
        if name.endswith(("_total", "_count", "_sum", "_bucket"))
        for labels, value in samples.items()
        if dict(labels).get("group") in groups
    }


def _executors_with_tasks(submitted: MonitorProcess) -> set[str]:
    """Return the ids of the executors that have run tasks, from the driver's REST API."""
    port = json.loads(submitted.environment["SPARK__CONF"])["spark.ui.port"]
    rest = f"http://127.0.0.1:{port}/api/v1/applications"
    [application] = _get_json(rest)
    executors = {each["id"]: each for each in _get_json(f"{rest}/{application['id']}/executors")}
    assert executors.pop("driver")["totalTasks"] == 0
    assert len(executors) == len(WORKERS)
    return {number for number, executor in executors.items() if executor["completedTasks"] > 0}


def _get_json(address: str) -> Any:  # noqa: ANN401 - JSON
    with urllib.request.urlopen(address, timeout=30) as response:  # noqa: S310 - the driver of this test
        return json.load(response)


def _executors_with_python() -> set[str]:
    """Return the ids of the executors that have started Spark's Python daemon. No other process may have started it."""
    children = psutil.Process().children(recursive=True)
    daemons = [process for process in children if "streaming.spark.daemon" in _command_line(process)]
    parents = [_command_line(parent) for daemon in daemons if (parent := daemon.parent()) is not None]
    jvms = [words for words in parents if "streaming.spark.daemon" not in words]  # the daemon forks its workers
    assert all("org.apache.spark.executor.CoarseGrainedExecutorBackend" in words for words in jvms)
    workers = {words[words.index("--worker-url") + 1] for words in jvms}
    assert len(workers) == len(WORKERS)
    return {words[words.index("--executor-id") + 1] for words in jvms}


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # the process has ended
        return []
