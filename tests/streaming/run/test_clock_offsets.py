"""One story at many differences between the monitor's clock and the broker's: what is told must be the same."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from streaming.evaluation.lag.broker_clocks import ReceivedRecords
from streaming.run.cluster_clock import ClusterClock
from tests.examples import EXAMPLES
from tests.streaming.run.samples.test_conditions import Monitor

SECOND_MS = 1_000
Seen = tuple[str | None, tuple[str, ...]]
"""The worst status of the group, and the conditions that hold."""


class Story:
    """A group that commits and lags, then falls silent; a second member of the cluster goes on writing."""

    def __init__(self, folder: Path, offset_ms: int) -> None:
        self.monitor = Monitor(folder, clock_offset_ms=offset_ms)
        self.cluster = self.monitor.cluster
        self.cluster.states = {"g": "Stable"}
        self.second = 0
        self.monitor.sampler.take_sample()
        self.monitor.write(self.monitor.generation(1))

    def run(self, seconds: int, commit_every: int | None) -> None:
        """Let time pass, second by second; what is written is read one second later."""
        for _ in range(seconds):
            self.cluster.now_ms += SECOND_MS
            self.second += 1
            self.cluster.end_offsets = {at: end + 10 for at, end in self.cluster.end_offsets.items()}
            commits = commit_every is not None and self.second % commit_every == 0
            record = self.cluster.log_end
            if commits:
                self.monitor.commit(p0=5 * self.second, p1=5 * self.second)
            else:
                self.cluster.log_end += 1
                self.monitor.read()
            written_ms = self.cluster.now_ms
            if self.second % 5 == 0:
                self.monitor.sampler.take_sample()
            received_ms = self.cluster.clock.monitor_ms() + 700
            numbers = (np.array([number]) for number in (0, record, written_ms))
            self.cluster.clock.take_records(ReceivedRecords(received_ms, *numbers))

    def seen(self) -> Seen:
        """Return what is shown."""
        view = self.monitor.monitor_state.view()
        assert view.lag is not None
        return view.lag.groups["status"][0].as_py(), tuple(sorted(self.monitor.active_conditions()))


def reported(folder: Path, offset_ms: int, commit_every: int) -> list[Seen]:
    """Return what is shown while the group works, after a minute of silence, and after much of it."""
    story = Story(folder, offset_ms)
    seen = []
    for seconds, every in ((100, commit_every), (20, commit_every), (90, None), (190, None), (60, None), (40, 1)):
        story.run(seconds, every)
        seen.append(story.seen())
    return seen


@settings(
    max_examples=max(1, EXAMPLES // 40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(-120 * SECOND_MS, 120 * SECOND_MS), st.sampled_from([1, 5]))
@example(-9 * SECOND_MS, 1)
@example(-15 * SECOND_MS, 1)
@example(-60 * SECOND_MS, 5)
@example(60 * SECOND_MS, 5)
@example(0, 1)
def test_what_is_told_does_not_depend_on_the_difference_between_the_clocks(
    tmp_path_factory: pytest.TempPathFactory, offset_ms: int, commit_every: int
):
    """Defect 9: with the monitor 9 s ahead a busy group was STOP; 60 s ahead, one that commits every 5 s."""
    seen = reported(tmp_path_factory.mktemp("story"), offset_ms, commit_every)
    working, silent = seen[0][0], seen[4]
    assert working in {"OK", "WARN"}
    assert seen[1] == seen[0]
    assert [status for status, _ in seen[2:5]] == ["STOP"] * 3, "true silences are still found"
    assert [conditions for _, conditions in seen[:4]] == [()] * 4, "and not before their time"
    assert silent == ("STOP", ("silent_group",))
    assert seen[5] == (working, ())


def test_a_clock_that_is_off_is_one_line_and_its_correction_survives_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    story = Story(tmp_path, -60 * SECOND_MS)
    with caplog.at_level(logging.INFO):
        story.run(100, 1)
    (line,) = [message for message in caplog.messages if "clock" in message]
    assert line.startswith("prod: the clock of broker 1 is ")
    assert line.endswith(" corrects its times for this. Synchronize the clocks with NTP")
    view = story.monitor.monitor_state.view()
    assert view.sample is not None
    offset = view.sample.clock_offsets[1]
    assert abs(offset.middle_ms + 60 * SECOND_MS) <= offset.within_ms <= 2 * SECOND_MS
    assert abs(view.cluster_ms(story.cluster.clock.monitor_ms()) - story.cluster.now_ms) <= 2 * SECOND_MS
    restarted = ClusterClock("prod", story.cluster.clock.monitor_ms)
    restarted.restore(story.cluster.clock.corrections_ms())
    assert restarted.now_ms() == story.cluster.clock.now_ms()
