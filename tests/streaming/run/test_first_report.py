"""Tests of the first report of a cluster: how often it is logged, and from which sample."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import pytest
from kafka.errors import KafkaConnectionError

from streaming.evaluation.lag.lag import ClusterSample
from streaming.group.listing import GroupListing
from streaming.run.first_report import FirstReport
from streaming.state.monitor_state import MonitorState


class Unreachable:
    """A connection without a broker that answers."""

    kafka_version = "4.2"

    def broker_ids(self) -> Sequence[int]:
        """Raise KafkaConnectionError."""
        raise KafkaConnectionError


class Steps:
    """A stop event. Each wait takes the next step. It is set after the last step."""

    def __init__(self, *steps: Callable[[], None]) -> None:
        self._steps = list(steps)

    def wait(self, _: float) -> bool:
        """Take the next step."""
        if self._steps:
            self._steps.pop(0)()
            return False
        return True


def test_the_report_is_logged_once_with_a_sample_of_the_running_watch(caplog: pytest.LogCaptureFixture) -> None:
    """With several clusters, a watch is started again after a failure. Each start logged the numbers of an old sample.

    The first watch of this test failed before its report was logged.
    """
    caplog.set_level(logging.INFO, "streaming.run.first_report")
    state = MonitorState()

    def sample(brokers: int) -> None:
        state.put_sample(ClusterSample(brokers, brokers=brokers), None, GroupListing(brokers, {}))

    def watch(*steps: Callable[[], None]) -> None:
        report.run(Unreachable(), "http://localhost:9560/", Steps(*steps))  # type: ignore[arg-type]

    report = FirstReport("eu", state)
    sample(2)
    watch(lambda: None)
    assert caplog.messages == [], "only an old sample exists"
    watch(lambda: None, lambda: sample(3), lambda: sample(4))
    watch(lambda: sample(5))
    assert [message.partition(" (")[0] for message in caplog.messages if "found" in message] == ["eu: found 3 brokers"]
