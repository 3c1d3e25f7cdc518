"""Tests of a monitor of several clusters, one of which cannot be watched."""

from __future__ import annotations

import io
import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import fields
from datetime import date
from pathlib import Path

import pytest
from kafka.errors import KafkaConnectionError, NodeNotReadyError

from streaming.config.load import Settings, load_settings
from streaming.config.settings import SparkSettings
from streaming.delta.on_disk import DeltaTables
from streaming.embedded.ports import free_port
from streaming.run.monitor import Monitor
from streaming.run.samples.readiness import Readiness, log_ends
from streaming.run.samples.sampler import Sampler
from streaming.run.samples.upkeep import Upkeep
from streaming.sampling.connection import BrokerUnreachableError
from streaming.spark.checkpoint import CheckpointError
from streaming.spark.launch.jvm import spark_launch
from streaming.state.monitor_state import MonitorState
from tests.streaming.run.samples.test_readiness import INTERVAL_MS, MAX_UNREAD_MS


def settings(tmp_path: Path, more: str = "") -> Settings:
    """Return settings with a broker address on which no process listens."""
    file = tmp_path / "monitor.toml"
    kafka = f"[kafka]\nbootstrap_servers = '127.0.0.1:{free_port()}'\nconnect_timeout_seconds = 0.1\n"
    paths = f"[paths]\ncheckpoint = '{tmp_path}/checkpoint'\ntables = '{tmp_path}/tables'\n[metrics]\nport = 0\n"
    file.write_text(kafka + paths + more)
    return load_settings(file)


def ignore_port(*_: object) -> None:
    """Ignore the port number."""


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_single_cluster_that_cannot_be_reached_ends_the_start(tmp_path: Path) -> None:
    """Rule 1: a wrong address is reported at once, and the supervisor of the process gets an exit code."""
    with spark_launch(SparkSettings()) as launch, pytest.raises(BrokerUnreachableError):
        Monitor(settings(tmp_path), threading.Event(), ignore_port).run(launch)


def test_a_stop_ends_a_monitor_that_is_still_connecting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client cannot be interrupted. With an unreachable broker, SIGTERM had no effect for half a minute."""
    stop, connecting, release = threading.Event(), threading.Event(), threading.Event()
    monitor = Monitor(settings(tmp_path), stop, ignore_port)

    def connect() -> io.BytesIO:
        connecting.set()
        release.wait()
        return io.BytesIO()

    monkeypatch.setattr(monitor._watches[0], "connect", connect)
    with spark_launch(SparkSettings()) as launch:
        thread = threading.Thread(target=monitor.run, args=(launch,))
        thread.start()
        assert connecting.wait(60)
        stop.set()
        thread.join(60)
        assert not thread.is_alive()
    release.set()


def test_one_unreachable_cluster_of_several_is_logged_once_and_retried_until_the_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 2: one line per retry would hide all other lines of the log."""
    monkeypatch.setattr("streaming.run.retry_state.LONGEST_PAUSE_SECONDS", 0.01)
    stop = threading.Event()
    monitor = Monitor(
        settings(tmp_path, f"[clusters.eu]\nbootstrap_servers = '127.0.0.1:{free_port()}'\n"), stop, print
    )
    watch, attempts = monitor._watches[1], []
    connect = watch.connect
    monkeypatch.setattr(watch, "connect", lambda: (attempts.append(1), connect())[1])
    watch.monitor_state.put_health(ready=True)
    with caplog.at_level(logging.ERROR):
        thread = threading.Thread(target=monitor._keep_watching, args=(watch, None))
        thread.start()
        wait_until(lambda: len(attempts) >= 4)
        stop.set()
        thread.join(60)
    assert not thread.is_alive()
    (line,) = [record.getMessage() for record in caplog.records if record.name.startswith("streaming")]
    assert line.startswith("eu cannot be watched; trying again: no broker at 127.0.0.1:")
    health = watch.monitor_state.view().health
    assert not health.ready
    assert health.query_restarts >= 3
    assert not watch.has_session


def test_a_failure_that_repeats_is_logged_once_until_the_cluster_was_ready_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 2 also covers failures after the brokers answered. A damaged checkpoint was one line every half minute."""
    monkeypatch.setattr("streaming.run.retry_state.LONGEST_PAUSE_SECONDS", 0.01)
    stop = threading.Event()
    monitor = Monitor(settings(tmp_path), stop, ignore_port)
    watch, attempts = monitor._watches[0], []

    def fail(*_: object) -> None:
        attempts.append(1)
        if len(attempts) == 4:
            watch.monitor_state.put_readiness(ready=True, before=watch.monitor_state.view().health)
        if len(attempts) == 7:
            stop.set()
        raise CheckpointError("the checkpoint is damaged")

    monkeypatch.setattr(watch, "connect", io.BytesIO)
    monkeypatch.setattr(watch, "cluster_session", lambda *_: nullcontext())
    monkeypatch.setattr(watch, "run", fail)
    with caplog.at_level(logging.ERROR):
        monitor._keep_watching(watch, None)  # type: ignore[arg-type]
    assert caplog.messages == ["default cannot be watched; trying again: the checkpoint is damaged"] * 2
    assert watch.monitor_state.view().health.query_restarts == 6


class Samples:
    """Samples that succeed or fail in a given order."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self._outcomes = list(outcomes)
        self.stop = threading.Event()

    def __call__(self) -> None:
        """Return or raise the next outcome. The last outcome stops the sampler."""
        outcome = self._outcomes.pop(0)
        if not self._outcomes:
            self.stop.set()
        if outcome is not None:
            raise outcome


def test_brokers_that_stop_answering_are_one_line_and_their_return_is_a_second(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that was down for a night caused twenty thousand lines."""
    failure, success = KafkaConnectionError("gone"), None
    samples = Samples(success, failure, NodeNotReadyError("still"), failure, success, success, failure, success)
    unused = {field.name: None for field in fields(Sampler)}
    used = {
        "cluster": "eu",
        "monitor_state": MonitorState(),
        "interval_seconds": 0.01,
        "readiness": Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS),
    }
    sampler = Sampler(**unused | used)
    monkeypatch.setattr(sampler, "take_sample", samples)
    with caplog.at_level(logging.INFO):
        sampler.run(samples.stop)
    assert [record.getMessage().partition(" (")[0] for record in caplog.records] == [
        "eu: brokers do not answer",
        "eu: brokers answer again",
        "eu: brokers do not answer",
        "eu: brokers answer again",
    ]


def test_only_one_of_several_clusters_starts_the_table_maintenance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two parallel runs would do the work twice and conflict, because both rewrite the same files."""
    maintenance_runs: list[object] = []
    tables = DeltaTables(str(tmp_path))

    def tidy(keep_from: date) -> Mapping[str, Exception]:
        maintenance_runs.append(keep_from)
        time.sleep(0.05)
        return {}

    monkeypatch.setattr(tables, "tidy", tidy)
    upkeep = Upkeep(tables, 90, maintenance_interval_seconds=0.5)
    time.sleep(0.5)
    threads = [threading.Thread(target=upkeep.start_if_due, args=(0,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    upkeep.close()
    assert len(maintenance_runs) == 1
