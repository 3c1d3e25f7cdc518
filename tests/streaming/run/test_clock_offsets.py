"""Tests that one scenario gives the same results for every offset between the monitor's and the broker's clock."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from assignors import assignor_named
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.lag.broker_clocks import ReceivedRecords
from streaming.evaluation.lag.lag import ClusterSample
from streaming.events import TopicMetadata
from streaming.feedback.external_facts import pending_facts
from streaming.run.cluster_clock import ClusterClock
from tests.streaming.run.samples.test_conditions import Monitor

SECOND_MS = 1_000
HOUR_MS = 3_600 * SECOND_MS
GroupStatus = tuple[str | None, tuple[str, ...]]
"""The worst status of the group, and its active conditions."""


class ClockScenario:
    """A group that commits and lags, and then stops. A different group of the cluster continues to write.

    The clock of the coordinator is `ahead_ms` ahead of the clocks of two other brokers.
    """

    ahead_ms = 0

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
                self.cluster.now_ms += self.ahead_ms
                self.monitor.commit(p0=self.read_offset(), p1=self.read_offset())
                self.cluster.now_ms -= self.ahead_ms
            else:
                self.cluster.log_end += 1
                self.monitor.read()
            written_ms = self.cluster.now_ms + self.ahead_ms
            if self.second % 5 == 0:
                self.monitor.sampler.take_sample()
            received_ms = self.cluster.clock.monitor_ms() + 700
            numbers = (np.array([number]) for number in (0, record, written_ms))
            self.cluster.clock.take_records(ReceivedRecords(received_ms, *numbers))

    def read_offset(self) -> int:
        """Return the offset up to which the group has read each partition."""
        return 5 * self.second

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


class SteadyGroup(ClockScenario):
    """A group that is always `behind_seconds` behind. Producers write 20 records/s."""

    behind_seconds = 2

    def read_offset(self) -> int:
        """Return the offset that the end of each partition had `behind_seconds` ago."""
        return max(0, 10 * (self.second - self.behind_seconds))

    def lag(self) -> dict[str, Any]:
        """Return the lag of the group."""
        view = self.monitor.monitor_state.view()
        assert view.lag is not None
        (of_group,) = view.lag.groups.to_pylist()
        return dict(of_group)


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
    restarted = ClusterClock("prod", scenario.cluster.clock.monitor_ms, lambda: 0)
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


@pytest.mark.parametrize("hours", [-1, 1, 365 * 24])
def test_a_clock_that_is_set_changes_no_value_of_a_healthy_group(tmp_path: Path, hours: int) -> None:
    """Before, samples had wrong times for 15 s. The lag in seconds was 24 minutes, and an incident opened."""
    scenario = SteadyGroup(tmp_path, 0)
    scenario.run(90, 1)
    for is_ahead in (True, False):
        scenario.cluster.clock_offset_ms = -hours * HOUR_MS * is_ahead
        for _ in range(6):
            scenario.run(5, 1)
            view, lag = scenario.monitor.monitor_state.view(), scenario.lag()
            assert view.sample is not None
            assert view.sample.sampled_at_ms == scenario.cluster.now_ms
            assert lag["lag_seconds"] == 2
            assert lag["produced_records_per_second"] == pytest.approx(20, abs=0.1)
            assert lag["consumed_records_per_second"] == pytest.approx(20, abs=0.1)
            assert view.incidents == ()


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_wrong_clock_at_the_first_start_shows_no_wrong_lag_and_no_wrong_rate(tmp_path: Path, hours: int) -> None:
    """Before, the lag in seconds was 48 minutes, the produce rate was 0.01 records/s, and an incident opened."""
    scenario = SteadyGroup(tmp_path, -hours * HOUR_MS)
    rates = ("produced_records_per_second", "consumed_records_per_second")
    for _ in range(18):
        scenario.run(5, 1)
        lag = scenario.lag()
        assert lag["lag_seconds"] <= 3
        assert all(lag[name] is None or abs(lag[name] - 20) <= 1 for name in rates if scenario.second > 10)
        assert scenario.monitor.monitor_state.view().incidents == ()
    assert all(lag[name] for name in rates)


@pytest.mark.parametrize(
    ("behind_seconds", "commit_every", "kinds"), [(0, 300, {None}), (100, 60, {None, "under_provisioned"})]
)
@pytest.mark.parametrize("ahead_seconds", [0, 180, -180])
def test_the_causes_of_lag_do_not_depend_on_the_clock_of_the_coordinator(
    tmp_path: Path, behind_seconds: int, commit_every: int, kinds: set[str | None], ahead_seconds: int
) -> None:
    """Before, a healthy group of a coordinator 3 minutes ahead was too slow in each commit interval.

    A group that is late had no cause if the clock of its coordinator was 3 minutes behind.
    """
    scenario = SteadyGroup(tmp_path, 0)
    scenario.ahead_ms, scenario.behind_seconds = ahead_seconds * SECOND_MS, behind_seconds
    scenario.cluster.clock.restore({1: scenario.ahead_ms, 2: 0, 3: 0})
    found = set()
    for _ in range(40):
        scenario.run(10, commit_every)
        explained = scenario.monitor.monitor_state.view().explained_lags
        found.add(explained["g"].cause.kind if "g" in explained else None)
        assert scenario.monitor.active_conditions() == {}
    assert found == kinds


@pytest.mark.parametrize("ahead_hours", [0, 1, 365 * 24])
def test_a_group_that_hangs_after_commits_in_the_future_is_found_in_the_same_time(
    tmp_path: Path, ahead_hours: int
) -> None:
    """The clock of a broker was ahead and was then set right. Before, the group was silent only an hour later."""
    monitor = Monitor(tmp_path)
    monitor.cluster.states = {"g": "Stable"}
    monitor.sampler.take_sample()
    monitor.write(monitor.generation(1))
    for number in range(10):
        monitor.cluster.now_ms += ahead_hours * HOUR_MS
        monitor.commit(p0=10 * number, p1=10 * number)
        monitor.cluster.now_ms -= ahead_hours * HOUR_MS
        monitor.pass_minutes(1, 10)
    assert monitor.active_conditions() == {}
    monitor.pass_minutes(7, 600)
    assert list(monitor.active_conditions()) == ["silent_group"]
    monitor.pass_minutes(4, 600)
    lag = monitor.monitor_state.view().lag
    assert lag is not None
    assert lag.groups["status"].to_pylist() == ["STOP"]


@pytest.mark.parametrize("ahead_seconds", [300, -300])
@pytest.mark.parametrize("leaders", [{0: 2}, {}], ids=["other leader", "no leader"])
def test_a_group_that_works_is_neither_stopped_nor_silent_when_the_leadership_moves(
    tmp_path: Path, ahead_seconds: int, leaders: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new leader's clock was known to be 5 minutes behind the old leader's clock.

    The read time of the old leader's clock was converted with the clock of the new leader. So it was 5 minutes in the
    future, and all groups with a lag had the status STOP.
    """
    scenario = SteadyGroup(tmp_path, 0)
    scenario.ahead_ms, scenario.behind_seconds = ahead_seconds * SECOND_MS, 200
    scenario.cluster.clock.restore({1: scenario.ahead_ms, 2: 0, 3: 0})
    scenario.run(400, 5)
    assert scenario.status() == ("WARN", ())
    sample = scenario.cluster.sample

    def moved(topics: Iterable[str]) -> ClusterSample:
        taken = sample(topics)
        return replace(taken, offsets_topic_leaders=leaders, offsets_topic=taken.offsets_topic if leaders else {})

    monkeypatch.setattr(scenario.cluster, "sample", moved)
    for _ in range(4):
        scenario.cluster.log_end += 1  # a record that the query has not read yet
        scenario.run(5, None)
        assert scenario.status() == ("WARN", ())


@pytest.mark.parametrize("ahead_seconds", [0, 600, -600])
def test_the_durations_of_conditions_from_samples_do_not_depend_on_the_clock_of_the_coordinator(
    tmp_path: Path, ahead_seconds: int
) -> None:
    """The coordinator's clock was 10 minutes ahead. At once, a missing topic "had not existed for 10 minutes"."""
    scenario = SteadyGroup(tmp_path, 0)
    scenario.ahead_ms = ahead_seconds * SECOND_MS
    scenario.cluster.clock.restore({1: scenario.ahead_ms, 2: 0, 3: 0})
    scenario.run(60, 5)
    since_ms = scenario.cluster.now_ms
    known = scenario.monitor.records["g"]
    snapshot = msgspec.structs.replace(known.snapshot, topics={"orders": TopicMetadata(None, since_ms)})
    scenario.monitor.monitor_state.put_batch([msgspec.structs.replace(known, snapshot=snapshot)], [])
    sample = scenario.cluster.sample
    scenario.cluster.sample = lambda topics: replace(sample(topics), missing_topics=frozenset({"orders"}))  # type: ignore[method-assign]
    scenario.run(300, 5)
    assert scenario.monitor.active_conditions() == {}
    scenario.run(5, 5)
    (detail,) = scenario.monitor.active_conditions().values()
    assert detail == "topic orders has not existed for 5 minutes; 2 members subscribe to it"


@pytest.mark.parametrize("ahead_seconds", [0, 1200, -1200])
def test_the_gap_of_a_rebalance_in_a_listing_does_not_depend_on_the_clock_of_the_coordinator(
    tmp_path: Path, ahead_seconds: int
) -> None:
    """A listing has the cluster's time. If the coordinator's clock is ahead, the rebalance seemed to begin too early.

    Then the gap had no cause: the oldest waiting record seemed to be written long after the rebalance.
    """
    scenario = SteadyGroup(tmp_path, 0)
    scenario.ahead_ms = ahead_seconds * SECOND_MS
    scenario.cluster.clock.restore({1: scenario.ahead_ms, 2: 0, 3: 0})
    scenario.run(60, 5)
    scenario.cluster.states = {"g": "PreparingRebalance"}
    scenario.run(290, None)
    assert scenario.monitor.active_conditions() == {}
    scenario.run(20, None)
    assert sorted(scenario.monitor.active_conditions()) == ["long_commit_gap", "stuck_rebalance"]


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
    clock = ClusterClock("prod", lambda: monitor_ms, lambda: 0)
    clock.restore(stored_corrections_ms)
    for time_ms in record_times_ms:
        clock.take_records(ReceivedRecords(monitor_ms, *(np.array([number]) for number in (0, 7, time_ms))))
    clock.take_records(ReceivedRecords(monitor_ms, *(np.array([], dtype=np.int64) for _ in range(3))))
    sample = clock.take_sample(ClusterSample(clock.now_ms()))
    assert sample.deletion_time_ms == (None if proven_ms is None else min(proven_ms, monitor_ms)), why
