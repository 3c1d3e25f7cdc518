"""What a monitor of several clusters makes of one that cannot be watched."""

from __future__ import annotations

import io
import logging
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from kafka.errors import KafkaConnectionError, NodeNotReadyError

from streaming.config.load import Settings, load_settings
from streaming.delta.on_disk import DeltaTables
from streaming.embedded.ports import free_port
from streaming.run.monitor import Monitor
from streaming.run.samples.sampler import Sampler
from streaming.run.samples.upkeep import Upkeep
from streaming.sampling.connection import BrokerUnreachableError
from streaming.spark.checkpoint import CheckpointError
from streaming.state.monitor_state import MonitorState


def settings(tmp_path: Path, more: str = "") -> Settings:
    """Settings of clusters where nobody listens."""
    file = tmp_path / "monitor.toml"
    kafka = f"[kafka]\nbootstrap_servers = '127.0.0.1:{free_port()}'\nconnect_timeout_seconds = 0.1\n"
    paths = f"[paths]\ncheckpoint = '{tmp_path}/checkpoint'\ntables = '{tmp_path}/tables'\n[metrics]\nport = 0\n"
    file.write_text(kafka + paths + more)
    return load_settings(file)


def nobody_is_heard(*_: object) -> None:
    """Take the port's number and do nothing."""


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_one_cluster_alone_that_is_not_there_ends_the_start(tmp_path: Path) -> None:
    """Rule 1: who mistyped an address is told so at once, and what supervises us sees an exit code."""
    with pytest.raises(BrokerUnreachableError):
        Monitor(settings(tmp_path), threading.Event(), nobody_is_heard).run()


def test_of_several_one_that_is_not_there_is_said_once_and_tried_until_told_to_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 2: a line for each try buries everything else that is said in a night."""
    monkeypatch.setattr("streaming.run.retry_state.LONGEST_PAUSE_SECONDS", 0.01)
    stop = threading.Event()
    monitor = Monitor(
        settings(tmp_path, f"[clusters.eu]\nbootstrap_servers = '127.0.0.1:{free_port()}'\n"), stop, print
    )
    watch, retry_state = monitor._watches[1], []
    connect = watch.connect
    monkeypatch.setattr(watch, "connect", lambda: (retry_state.append(1), connect())[1])
    watch.monitor_state.put_health(ready=True)
    with caplog.at_level(logging.ERROR):
        thread = threading.Thread(target=monitor._keep_watching, args=(watch, None))
        thread.start()
        until(lambda: len(retry_state) >= 4)
        stop.set()
        thread.join(60)
    assert not thread.is_alive()
    (line,) = [record.getMessage() for record in caplog.records if record.name.startswith("streaming")]
    assert line.startswith("eu cannot be watched; trying again: no broker at 127.0.0.1:")
    health = watch.monitor_state.view().health
    assert not health.ready
    assert health.query_restarts >= 3
    assert not watch.has_session


def test_what_a_run_fails_with_each_time_is_said_once_until_it_was_ready_in_between(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 2, of what comes after the brokers answered: a damaged checkpoint was a line each half minute."""
    monkeypatch.setattr("streaming.run.retry_state.LONGEST_PAUSE_SECONDS", 0.01)
    stop = threading.Event()
    monitor = Monitor(settings(tmp_path), stop, nobody_is_heard)
    watch, retry_state = monitor._watches[0], []

    def fail(*_: object) -> None:
        retry_state.append(1)
        if len(retry_state) == 4:
            watch.monitor_state.put_readiness(ready=True, before=watch.monitor_state.view().health)
        if len(retry_state) == 7:
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
    """A sampler's beat with answers by turns."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self._outcomes = list(outcomes)
        self.stop = threading.Event()

    def __call__(self) -> None:
        """Answer, or raise; the last one stops."""
        outcome = self._outcomes.pop(0)
        if not self._outcomes:
            self.stop.set()
        if outcome is not None:
            raise outcome


def test_brokers_that_fall_silent_are_one_line_and_one_more_when_they_are_back(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that was away for a night once was twenty thousand lines."""
    silent, back = KafkaConnectionError("gone"), None
    samples = Samples(back, silent, NodeNotReadyError("still"), silent, back, back, silent, back)
    sampler = Sampler(
        cluster="eu",
        monitor_state=MonitorState(),
        interval_seconds=0.01,
        **dict.fromkeys(("groups", "lag_watch", "readiness", "after")),
    )
    monkeypatch.setattr(sampler, "take_sample", samples)
    with caplog.at_level(logging.INFO):
        sampler.run(samples.stop)
    assert [record.getMessage().partition(" (")[0] for record in caplog.records] == [
        "eu: brokers do not answer",
        "eu: brokers answer again",
        "eu: brokers do not answer",
        "eu: brokers answer again",
    ]


def test_of_all_clusters_that_ask_one_tidies_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice at once is twice the work, and a conflict between two that rewrite the same files."""
    tidied: list[object] = []
    tables = DeltaTables(str(tmp_path))
    monkeypatch.setattr(tables, "tidy", lambda keep_from: (tidied.append(keep_from), time.sleep(0.05)))
    upkeep = Upkeep(tables, 90, maintenance_interval_seconds=0.5)
    time.sleep(0.5)
    asking = [threading.Thread(target=upkeep.start_if_due, args=(0,)) for _ in range(8)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    upkeep.close()
    assert len(tidied) == 1
