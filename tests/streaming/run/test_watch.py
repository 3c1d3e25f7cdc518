"""Tests of a query that fails repeatedly."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from streaming.config.load import Settings
from streaming.run.cluster_clock import ClusterClock
from streaming.run.query.keeper import QueryKeeper
from streaming.run.samples.readiness import Readiness, log_ends
from streaming.run.watch import ClusterWatch
from streaming.run.writers import SecondWriterError
from streaming.sampling.brokers import OffsetsTopicMissingError
from streaming.sampling.connection import DifferentClusterError
from streaming.spark.checkpoint import CLUSTER_ID
from streaming.state.monitor_state import MonitorState
from tests.streaming.run.samples.test_readiness import INTERVAL_MS, MAX_UNREAD_MS
from tests.streaming.run.test_cluster_identity import EU, US, connect


class _ClaimThatStays:
    """The claim of a monitor that is the only writer."""

    refusal = None

    def check(self) -> None:
        """Do nothing, because no other monitor writes."""


def test_a_query_that_fails_for_one_reason_is_logged_once_until_it_was_ready_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 4 of `retry_state`: the reason is logged again, and pauses are short again, after the query was ready."""
    monkeypatch.setattr("streaming.run.retry_state.LONGEST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr("streaming.run.query.keeper.BatchSink", lambda **_: SimpleNamespace(failure=None))
    stop, monitor_state, started = threading.Event(), MonitorState(), []
    run = _keeper(monitor_state)

    def fail(*_: object) -> None:
        started.append(1)
        if len(started) == 3:
            monitor_state.put_readiness(ready=True, before=monitor_state.view().health)
        if len(started) == 5:
            stop.set()
        raise PySparkException(f"offsets of task {len(started)} are out of range")

    monkeypatch.setattr(run, "_start_query", fail)
    monkeypatch.setattr("streaming.run.query.keeper.check_restart_helps", lambda *_, **__: None)
    with caplog.at_level(logging.ERROR):
        run.keep(None, None, _ClaimThatStays(), stop)  # type: ignore[arg-type]
    assert len(started) == 5
    assert [message.partition(": ")[0] for message in caplog.messages] == ["eu", "eu"]
    assert (monitor_state.view().health.ready, monitor_state.view().health.query_restarts) == (False, 4)


def test_a_batch_that_may_not_append_ends_the_run_instead_of_a_new_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second monitor writes (rule 6 of `writers`). A new query would read the same batch again and again."""
    monkeypatch.setattr("streaming.run.query.keeper.BatchSink", lambda **_: SimpleNamespace(failure=None))
    run = _keeper(MonitorState())

    def fail(*_: object) -> None:
        raise PySparkException("the batch failed")

    def refuse() -> None:
        raise SecondWriterError("the record of this monitor is missing")

    monkeypatch.setattr(run, "_start_query", fail)
    with pytest.raises(SecondWriterError):
        run.keep(None, None, SimpleNamespace(check=refuse), threading.Event())  # type: ignore[arg-type]


def test_a_query_that_fails_on_a_different_kafka_cluster_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address led to a different cluster. A new query would read the records of that cluster."""
    monkeypatch.setattr("streaming.run.query.keeper.BatchSink", lambda **_: SimpleNamespace(failure=None))
    run = _keeper(MonitorState())

    def fail(*_: object) -> None:
        raise PySparkException("the batch failed")

    def refuse() -> None:
        raise DifferentClusterError("the brokers belong to a different Kafka cluster")

    monkeypatch.setattr(run, "_start_query", fail)
    run.cluster_session.connection.check_cluster = refuse  # type: ignore[method-assign]
    with pytest.raises(DifferentClusterError):
        run.keep(None, None, _ClaimThatStays(), threading.Event())  # type: ignore[arg-type]


def test_a_different_cluster_without_the_offsets_topic_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    """The address led to a new cluster, and the monitor waited for its first commit."""
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / CLUSTER_ID).write_text(f"{EU}\n")
    settings = Settings.model_validate({"paths": {"checkpoint": str(checkpoint)}})
    watch = ClusterWatch(settings, lambda: 0, lambda: 0)
    with pytest.raises(DifferentClusterError), watch.cluster_session(connect(US), threading.Event()):
        pass


def test_the_monitor_shows_that_it_waits_for_the_offsets_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new cluster has no topic until the first commit of a group.

    A critical alert named wrong causes, because no metric distinguished this from a monitor that makes no progress.
    """
    monkeypatch.setattr("streaming.run.watch._TOPIC_POLL_SECONDS", 0)
    watch = object.__new__(ClusterWatch)
    watch.cluster, watch.monitor_state = "eu", MonitorState()
    shown = []

    class NewCluster:
        def offsets_topic_partitions(self) -> list[int]:
            shown.append(watch.monitor_state.view().health.waits_for_topic)
            if len(shown) < 3:
                raise OffsetsTopicMissingError("the cluster has no topic __consumer_offsets")
            return [0, 1]

    assert watch._offsets_topic_partitions(NewCluster(), threading.Event()) == [0, 1]  # type: ignore[arg-type]
    assert [*shown, watch.monitor_state.view().health.waits_for_topic] == [False, True, True, False]


def _keeper(monitor_state: MonitorState) -> QueryKeeper:
    run = object.__new__(QueryKeeper)
    run._cluster, run.monitor_state, run.clock = "eu", monitor_state, ClusterClock("eu", lambda: 0, lambda: 0)
    run.committed_offsets = run.files = None  # type: ignore[assignment]
    run.shared = SimpleNamespace(session=None)  # type: ignore[assignment]
    run.readiness = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS)
    connection = SimpleNamespace(is_different_cluster=False, check_cluster=lambda: None)
    run.cluster_session = SimpleNamespace(connection=connection)  # type: ignore[assignment]
    return run
