"""The monitor under `spark-submit`, as the Spark operator and Spark's standalone clusters start it."""

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
from streaming.jars import resolve
from tests.end_to_end.conftest import Group, create_topics
from tests.end_to_end.monitor_process import MonitorProcess, until
from tests.end_to_end.what_kafka_says import WhatKafkaSays

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
WORKERS = ("Worker-1", "Worker-2")
LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(SPARK_HOME)}


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Spark's own cluster on this machine: a master, and two workers of one core each."""
    address = f"spark://127.0.0.1:{free_port()}"
    port = address.rpartition(":")[2]
    words = {"Master": ("--host", "127.0.0.1", "--port", port, "--webui-port", "0")}
    for worker in WORKERS:
        folder = str(tmp_path / worker)
        words[worker] = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", folder, address)
    with ExitStack() as stack:
        for name, given in words.items():
            kind = name.partition("-")[0]
            command = [
                str(SPARK_HOME / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{kind.lower()}.{kind}",
                *given,
            ]
            started = ChildProcess(command, tmp_path / f"{name}.log", {**os.environ, **LOOPBACK})
            stack.callback(started.kill)
        log = tmp_path / "Master.log"
        until("the workers", lambda: log.read_text().count("Registering worker") == len(WORKERS))
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
    conf = json.dumps({"spark.ui.enabled": "true", "spark.ui.port": str(free_port())})
    settings = {"SPARK__MASTER": "local[1]", "SPARK__CONF": conf}
    monitor = MonitorProcess(broker.bootstrap_servers, folder, environment=settings, command=command)
    yield monitor
    if monitor.process is not None and monitor.process.poll() is None:
        os.killpg(monitor.process.pid, signal.SIGKILL)


def test_two_workers_of_the_master_it_was_submitted_to_find_what_one_machine_finds(
    broker: EmbeddedBroker, submitted: MonitorProcess, tmp_path: Path, name: str
):
    """Its settings say local[1]: were that to hold, no executor would ever see a record.

    Some groups have ended before it starts, one lives while it runs; then the same log is read by local[2] (law 3).
    """
    create_topics(broker, {name: 4})
    before, living, standing = [f"{name}-{number}" for number in range(2)], f"{name}-living", f"{name}-standing"
    for group_id in before:
        with _members(broker, group_id, name):
            pass
    with _members(broker, standing, name):
        submitted.start().wait_until_ready()
        with _members(broker, living, name):
            until("the group", lambda: submitted.value("rebalance_monitor_group_members", group=living) == 2)
            until("its lag", lambda: submitted.value("rebalance_monitor_group_lag", group=living) == 0)
            assert _who_python_works_for() == _who_has_run_tasks(submitted)
        ended = [*before, living]
        until("the end", lambda: [submitted.by_state(group_id) for group_id in ended] == ["Empty"] * len(ended))
        emptied = "'kind': 'became_empty'"  # the last row of each; what shows comes before what is written
        until("its rows", lambda: sum(emptied in row for row in _rows(submitted, "rebalances", ended)) == len(ended))
        counts = _counts(submitted, ended)
        assert submitted.process is not None
        os.killpg(submitted.process.pid, signal.SIGTERM)
        submitted.process.wait(60)
        assert "Traceback" not in submitted.log.read_text()
        locally = MonitorProcess(broker.bootstrap_servers, tmp_path / "local").start().wait_until_ready()
        until("the same counts", lambda: counts and _counts(locally, ended) == counts)
        # A verdict waits for metadata until a newer record comes: what was evaluated live a later reader finds unknown.
        _agree(submitted, locally, ("group_generations", "rebalances", "commit_gaps"), ended)
        _agree(submitted, locally, ("assignment_drift", "assignment_imbalance"), [*before, standing])
        assert any("'verdict': 'match'" in row for row in _rows(locally, "assignment_drift", [standing]))
        assert locally.stop() == 0


def _agree(submitted: MonitorProcess, locally: MonitorProcess, tables: Sequence[str], groups: Collection[str]) -> None:
    """Wait until the tables of both have the same rows of the groups, of each at least one."""
    for table in tables:
        rows = _rows(submitted, table, groups)
        assert {group_id for row in rows for group_id in groups if group_id in row} == set(groups), table
        until(f"the same {table}", lambda: _rows(locally, table, groups) == rows)  # noqa: B023 - asked within its turn


@contextmanager
def _members(broker: EmbeddedBroker, group_id: str, topic: str) -> Iterator[None]:
    """Two members that have committed, as long as the block runs."""
    group, kafka_says = Group(broker.bootstrap_servers, group_id), WhatKafkaSays(broker.bootstrap_servers)
    try:
        group.join([topic])
        group.join([topic])
        until("two members and all commits", lambda: _members_and_commits(kafka_says, group_id) == (2, 4))
        yield
    finally:
        group.leave_all()
        kafka_says.close()


def _members_and_commits(kafka_says: WhatKafkaSays, group_id: str) -> tuple[int, int]:
    with suppress(KafkaError):  # until the group's coordinator is there
        return len(kafka_says.group(group_id)["members"]), len(kafka_says.committed(group_id))
    return 0, 0


def _rows(monitor: MonitorProcess, table: str, groups: Collection[str]) -> list[str]:
    """What stems from records alone, whoever read them and when; in an order of its own."""
    rows = [row for row in monitor.rows(table) if row["group_id"] in groups and row.get("sampled_time") is None]
    when = {"metadata_sampled_time", "sampled_time"}
    return sorted(str({name: value for name, value in row.items() if name not in when}) for row in rows)


def _counts(monitor: MonitorProcess, groups: Collection[str]) -> Mapping[object, float]:
    """All counters and histograms of the groups."""
    return {
        (name, labels): value
        for name, samples in monitor.metrics().items()
        if name.endswith(("_total", "_count", "_sum", "_bucket"))
        for labels, value in samples.items()
        if dict(labels).get("group") in groups
    }


def _who_has_run_tasks(submitted: MonitorProcess) -> set[str]:
    """The workers whose executors have, by the driver's own REST interface; there is no other executor."""
    port = json.loads(submitted.environment["SPARK__CONF"])["spark.ui.port"]
    rest = f"http://127.0.0.1:{port}/api/v1/applications"
    [application] = _asked(rest)
    executors = {each["id"]: each for each in _asked(f"{rest}/{application['id']}/executors")}
    assert executors.pop("driver")["totalTasks"] == 0
    assert len(executors) == len(WORKERS)
    return {number for number, executor in executors.items() if executor["completedTasks"] > 0}


def _asked(address: str) -> Any:  # noqa: ANN401 - JSON
    with urllib.request.urlopen(address, timeout=30) as response:  # noqa: S310 - our own driver
        return json.load(response)


def _who_python_works_for() -> set[str]:
    """The executors that have started Spark's Python daemon below this test; nobody else has."""
    below_us = psutil.Process().children(recursive=True)
    daemons = [process for process in below_us if "streaming.spark.daemon" in _words(process)]
    parents = [_words(parent) for daemon in daemons if (parent := daemon.parent()) is not None]
    jvms = [words for words in parents if "streaming.spark.daemon" not in words]  # it forks its workers
    assert all("org.apache.spark.executor.CoarseGrainedExecutorBackend" in words for words in jvms)
    workers = {words[words.index("--worker-url") + 1] for words in jvms}
    assert len(workers) == len(WORKERS)
    return {words[words.index("--executor-id") + 1] for words in jvms}


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # it ended meanwhile
        return []
