"""Tests that one scenario gives the same results for every offset between the monitor's and the broker's clock."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from assignors import assignor_named
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.lag.broker_clocks import ReceivedRecords
from streaming.evaluation.lag.lag import ClusterSample
from streaming.feedback.external_facts import pending_facts
from streaming.run.cluster_clock import ClusterClock
from tests.streaming.run.samples.test_conditions import Monitor

SECOND_MS = 1_000
HOUR_MS = 3_600 * SECOND_MS
GroupStatus = tuple[str | None, tuple[str, ...]]
"""The worst status of the group, and its active conditions."""


class ClockScenario:
    """A group that commits and lags, and then stops. A different group of the cluster continues to write."""

    def __init__(self, folder: Path, offset_ms: int) -> None:
        self.monitor = Monitor(folder, clock_offset_ms=offset_ms)
        self.cluster = self.monitor.cluster
        self.cluster.states = {"g": "Stable"}
        self.second = 0
        self.monitor.sampler.take_sample()
        self.monitor.write(self.monitor.generation(1))

    def run(self, seconds: int, commit_every: int | None) -> None:
        """Let time pass second by second. Records are read one second after they are written."""
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

    def status(self) -> GroupStatus:
        """Return the group's status and conditions as the monitor shows them."""
        view = self.monitor.monitor_state.view()
        assert view.lag is not None
        return view.lag.groups["status"][0].as_py(), tuple(sorted(self.monitor.active_conditions()))

    def feed_back(self) -> GroupState:
        """Apply the facts that the group's state does not contain yet, and return the state."""
        view, record = self.monitor.monitor_state.view(), self.monitor.records["g"]
        assert view.sample is not None
        facts = pending_facts(record.snapshot, view.sample, view.decided_skips)
        self.monitor.records["g"] = apply_batch(record, facts, [assignor_named("range")]).record
        return self.monitor.records["g"]


def run_scenario(folder: Path, offset_ms: int, commit_every: int) -> list[GroupStatus]:
    """Return the group's status while it works, after short and long silence, and after it works again."""
    scenario = ClockScenario(folder, offset_ms)
    statuses = []
    for seconds, every in ((100, commit_every), (20, commit_every), (90, None), (190, None), (60, None), (40, 1)):
        scenario.run(seconds, every)
        statuses.append(scenario.status())
    return statuses


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(-120 * SECOND_MS, 120 * SECOND_MS), st.sampled_from([1, 5]))
@example(-9 * SECOND_MS, 1)
@example(-15 * SECOND_MS, 1)
@example(-60 * SECOND_MS, 5)
@example(60 * SECOND_MS, 5)
@example(-30 * HOUR_MS, 5)
@example(30 * HOUR_MS, 5)
@example(0, 1)
def test_results_do_not_depend_on_the_offset_between_the_clocks(
    tmp_path_factory: pytest.TempPathFactory, offset_ms: int, commit_every: int
):
    """Defect 9: a monitor 9 s ahead showed STOP for a busy group.

    A monitor 60 s ahead showed STOP for a group that commits every 5 s.
    """
    statuses = run_scenario(tmp_path_factory.mktemp("scenario"), offset_ms, commit_every)
    working, silent = statuses[0][0], statuses[4]
    assert working in {"OK", "WARN"}
    assert statuses[1] == statuses[0]
    assert [status for status, _ in statuses[2:5]] == ["STOP"] * 3, "a group that really stopped is still detected"
    assert [conditions for _, conditions in statuses[:4]] == [()] * 4, "conditions do not start too early"
    assert silent == ("STOP", ("silent_group",))
    assert statuses[5] == (working, ())


def test_a_wrong_clock_is_one_log_line_and_its_correction_survives_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    scenario = ClockScenario(tmp_path, -60 * SECOND_MS)
    with caplog.at_level(logging.INFO):
        scenario.run(100, 1)
    (line,) = [message for message in caplog.messages if "clock" in message]
    assert line.startswith("prod: the clock of broker 1 is ")
    assert line.endswith(" corrects its times for this. Synchronize the clocks with NTP")
    view = scenario.monitor.monitor_state.view()
    assert view.sample is not None
    offset = view.sample.clock_offsets[1]
    assert abs(offset.middle_ms + 60 * SECOND_MS) <= offset.within_ms <= 2 * SECOND_MS
    assert abs(view.cluster_ms(scenario.cluster.clock.monitor_ms()) - scenario.cluster.now_ms) <= 2 * SECOND_MS
    restarted = ClusterClock("prod", scenario.cluster.clock.monitor_ms)
    restarted.restore(scenario.cluster.clock.corrections_ms())
    assert restarted.now_ms() == scenario.cluster.clock.now_ms()


@pytest.mark.parametrize("hours", [-6, 6, 0, 30])
def test_samples_from_before_the_clock_was_known_do_not_hide_later_samples(tmp_path: Path, hours: int) -> None:
    """Before, the state ignored all samples of topics until the time of its first sample, for example for six hours."""
    scenario = ClockScenario(tmp_path, -hours * HOUR_MS)
    scenario.run(20, 1)
    scenario.cluster.partitions = 4
    scenario.run(10, 1)
    record = scenario.feed_back()
    assert record.unowned_partitions() == 2
    assert record.violations is not None
    for one in record.violations.unowned:
        assert abs(scenario.cluster.now_ms - one.since_ms) <= 30 * SECOND_MS
    assert scenario.feed_back() == record, "the state now has the time of the last sample"


@pytest.mark.parametrize("hours", [-6, 6, 0, 30])
def test_the_duration_of_a_rebalance_does_not_depend_on_the_correction_of_the_clock(tmp_path: Path, hours: int) -> None:
    """Before, a monitor six hours behind reported a stuck rebalance at once. A monitor ahead reported it hours late."""
    scenario = ClockScenario(tmp_path, -hours * HOUR_MS)
    scenario.cluster.states = {"g": "PreparingRebalance"}
    scenario.monitor.sampler.take_sample()
    scenario.run(60, 1)
    view = scenario.monitor.monitor_state.view()
    assert view.listing is not None
    assert view.listing.sampled_at_ms - view.rebalancing_since_ms["g"] == 60 * SECOND_MS
    assert scenario.monitor.active_conditions() == {}
    scenario.run(250, 1)
    assert list(scenario.monitor.active_conditions()) == ["stuck_rebalance"]


def test_a_clock_that_differs_by_more_than_a_day_is_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Before, such a difference was not corrected, not exported and not logged."""
    scenario = ClockScenario(tmp_path, 30 * HOUR_MS)
    scenario.run(30, 1)
    (line,) = [message for message in caplog.messages if "clock" in message]
    assert line.startswith("prod: the clock of broker 1 is 10800")
    view = scenario.monitor.monitor_state.view()
    assert view.sample is not None
    assert abs(view.sample.clock_offsets[1].middle_ms - 30 * HOUR_MS) <= 2 * SECOND_MS
    assert abs(view.sample.sampled_at_ms - scenario.cluster.now_ms) <= 2 * SECOND_MS
    deletion_time_ms = view.sample.deletion_time_ms
    assert deletion_time_ms is not None
    assert deletion_time_ms < scenario.cluster.now_ms - 29 * HOUR_MS, "old rows: by the earlier clock"


NOW_MS = 20_000 * 24 * HOUR_MS


@pytest.mark.parametrize("monitor_ahead_hours", [-2400, 0, 2400])
@pytest.mark.parametrize("stored_corrections_ms", [{}, {1: 0}, {1: 5_000}])
@pytest.mark.parametrize(
    ("record_times_ms", "proven_ms", "why"),
    [
        ([], None, "a quiet cluster"),
        ([-1, -1], None, "records without a time"),
        ([NOW_MS - HOUR_MS, -1], NOW_MS - HOUR_MS, "an old record, which was written before the start"),
        ([NOW_MS, NOW_MS - HOUR_MS], NOW_MS, "a busy cluster, before the difference of the clocks is known"),
    ],
)
def test_after_a_start_only_the_time_of_a_record_proves_that_rows_are_old(
    monitor_ahead_hours: int,
    stored_corrections_ms: dict[int, int],
    record_times_ms: list[int],
    proven_ms: int | None,
    why: str,
) -> None:
    """A monitor started with a clock 100 days ahead. Its maintenance deleted every row of every table."""
    monitor_ms = NOW_MS + monitor_ahead_hours * HOUR_MS
    clock = ClusterClock("prod", lambda: monitor_ms)
    clock.restore(stored_corrections_ms)
    for time_ms in record_times_ms:
        clock.take_records(ReceivedRecords(monitor_ms, *(np.array([number]) for number in (0, 7, time_ms))))
    clock.take_records(ReceivedRecords(monitor_ms, *(np.array([], dtype=np.int64) for _ in range(3))))
    sample = clock.take_sample(ClusterSample(clock.now_ms()))
    assert sample.deletion_time_ms == (None if proven_ms is None else min(proven_ms, monitor_ms)), why
