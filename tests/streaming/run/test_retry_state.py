"""What is said, counted and waited for while a cluster cannot be watched."""

from __future__ import annotations

import pytest

from streaming.errors import RemedyError
from streaming.run.retry_state import LONGEST_PAUSE_SECONDS, RetryState
from streaming.state.monitor_state import MonitorState


@pytest.fixture
def monitor_state() -> MonitorState:
    """Return that of a cluster that was ready before."""
    monitor_state = MonitorState()
    becomes_ready(monitor_state)
    return monitor_state


def becomes_ready(monitor_state: MonitorState) -> None:
    """Have the sampler find it ready, as it does in every beat from then on."""
    for _ in range(3):
        monitor_state.put_readiness(ready=True, before=monitor_state.view().health)


def py4j_error(object_id: int, why: str) -> Exception:
    """Return what Spark's errors look like from here."""
    return RuntimeError(f"An error occurred while calling o{object_id}.load.\n: {why}\n\tat o{object_id}.Load")


def test_each_try_that_fails_is_not_ready_and_counts_as_a_restart(monitor_state: MonitorState) -> None:
    """Rule 1: who counts only failures within a query sees nothing of a cluster that fails before it has one."""
    retry_state = RetryState(monitor_state)
    for number in (1, 2, 3):
        retry_state.record_failure(RemedyError("no broker at 127.0.0.1:9092"))
        health = monitor_state.view().health
        assert (health.ready, health.was_ready, health.query_restarts) == (False, True, number)


@pytest.mark.parametrize(
    ("first", "second", "is_said", "why"),
    [
        (RemedyError("broken"), RemedyError("broken"), False, "one line a night, not one each half minute"),
        (RemedyError("no broker"), RemedyError("broken"), True, "the remedy is another"),
        (RemedyError("broken"), ValueError("broken"), True, "so is one of another kind"),
        (py4j_error(17, "No space"), py4j_error(912, "No space"), False, "Py4J counts its objects"),
        (py4j_error(17, "No space"), py4j_error(18, "Access denied"), True, "the second line says why"),
    ],
)
def test_a_reason_is_said_when_it_is_another(
    monitor_state: MonitorState, first: Exception, second: Exception, is_said: bool, why: str
) -> None:
    """Rule 2."""
    retry_state = RetryState(monitor_state)
    assert retry_state.record_failure(first)
    assert retry_state.record_failure(second) is is_said, why
    assert not retry_state.record_failure(second)


def test_pauses_grow_until_it_was_ready_and_then_all_is_new(monitor_state: MonitorState) -> None:
    """Rules 3 and 4: six failures in six months are no reason to wait half a minute at the seventh."""
    retry_state = RetryState(monitor_state)
    pauses, said = [], []
    for ready_before in (False, False, False, False, False, False, False, True, False):
        if ready_before:
            becomes_ready(monitor_state)
        said.append(retry_state.record_failure(RemedyError("broken")))
        pauses.append(retry_state.pause_seconds)
    assert pauses == [1, 2, 4, 8, 16, LONGEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, 1, 2]
    assert said == [True, *[False] * 6, True, False]


def test_years_of_pauses_are_no_number_too_large(monitor_state: MonitorState) -> None:
    retry_state = RetryState(monitor_state)
    for _ in range(2_000):
        retry_state.record_failure(RemedyError("broken"))
    assert retry_state.pause_seconds == LONGEST_PAUSE_SECONDS
