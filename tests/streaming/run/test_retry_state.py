"""Tests of log lines, counters and pauses while a cluster cannot be watched."""

from __future__ import annotations

import pytest

from streaming.errors import RemedyError
from streaming.run.retry_state import LONGEST_PAUSE_SECONDS, RetryState
from streaming.state.monitor_state import MonitorState


@pytest.fixture
def monitor_state() -> MonitorState:
    """Return the state of a cluster that was ready before."""
    monitor_state = MonitorState()
    make_ready(monitor_state)
    return monitor_state


def make_ready(monitor_state: MonitorState) -> None:
    """Report the cluster as ready in three samples."""
    for _ in range(3):
        monitor_state.put_readiness(ready=True, before=monitor_state.view().health)


def py4j_error(object_id: int, why: str) -> Exception:
    """Return an error in the form of Spark's errors through Py4J."""
    return RuntimeError(f"An error occurred while calling o{object_id}.load.\n: {why}\n\tat o{object_id}.Load")


def test_after_each_failed_attempt_the_cluster_is_not_ready_and_one_restart_is_counted(
    monitor_state: MonitorState,
) -> None:
    """Rule 1: a cluster may fail before it has a query. A counter of query failures alone would miss this."""
    retry_state = RetryState(monitor_state)
    for number in (1, 2, 3):
        retry_state.record_failure(RemedyError("no broker at 127.0.0.1:9092"))
        health = monitor_state.view().health
        assert (health.ready, health.was_ready, health.query_restarts) == (False, True, number)


@pytest.mark.parametrize(
    ("first", "second", "is_logged", "why"),
    [
        (
            RemedyError("broken"),
            RemedyError("broken"),
            False,
            "the same failure is one line, not one line every half minute",
        ),
        (RemedyError("no broker"), RemedyError("broken"), True, "the remedy is different"),
        (RemedyError("broken"), ValueError("broken"), True, "the class of the error is different"),
        (py4j_error(17, "No space"), py4j_error(912, "No space"), False, "only Py4J's object number is different"),
        (
            py4j_error(17, "No space"),
            py4j_error(18, "Access denied"),
            True,
            "the reason in the second line is different",
        ),
    ],
)
def test_a_reason_is_logged_only_if_it_changed(
    monitor_state: MonitorState, first: Exception, second: Exception, is_logged: bool, why: str
) -> None:
    """Tests rule 2."""
    retry_state = RetryState(monitor_state)
    assert retry_state.record_failure(first)
    assert retry_state.record_failure(second) is is_logged, why
    assert not retry_state.record_failure(second)


def test_pauses_grow_until_the_cluster_is_ready_and_then_start_again(monitor_state: MonitorState) -> None:
    """Rules 3 and 4: after six failures in six months, the seventh must not cause a pause of half a minute."""
    retry_state = RetryState(monitor_state)
    pauses, logged = [], []
    for ready_before in (False, False, False, False, False, False, False, True, False):
        if ready_before:
            make_ready(monitor_state)
        logged.append(retry_state.record_failure(RemedyError("broken")))
        pauses.append(retry_state.pause_seconds)
    assert pauses == [1, 2, 4, 8, 16, LONGEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, 1, 2]
    assert logged == [True, *[False] * 6, True, False]


def test_after_thousands_of_failures_the_pause_is_still_the_longest_one(monitor_state: MonitorState) -> None:
    retry_state = RetryState(monitor_state)
    for _ in range(2_000):
        retry_state.record_failure(RemedyError("broken"))
    assert retry_state.pause_seconds == LONGEST_PAUSE_SECONDS
