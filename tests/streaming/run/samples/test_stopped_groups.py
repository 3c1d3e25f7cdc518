"""Stories of groups that stop for days. Nothing that the monitor knows about them may go quiet by itself.

The sampler is the real one, with one sample per hour. The monitor is restarted once per day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from streaming.evaluation.facts import GroupLag
from streaming.evaluation.limits import GroupLimits
from streaming.evaluation.report import GroupReport
from streaming.events import GroupMetadataWritten, Position
from streaming.group.snapshot import EMPTY
from tests.streaming.groups import metadata
from tests.streaming.run.samples.lag.test_retention_settings import Configs
from tests.streaming.run.samples.test_conditions import MINUTE_MS, START_MS, Monitor

PARTITION = ("orders", 0)
DAY_HOURS, HOUR_MINUTES = 24, 60
RETENTION_HOURS, SEGMENT_HOURS = 3 * DAY_HOURS, 6
WEEK_MS = 7 * DAY_HOURS * HOUR_MINUTES * MINUTE_MS
A_MINUTE = 10


class Sample(NamedTuple):
    """What the monitor shows this number of hours after the group stopped. `since_start`: samples since the restart."""

    hours: int
    since_start: int
    lag: GroupLag
    troubles: Sequence[str]


class Weekend:
    """A group that reads partition 0 until its members stop. Producers and retention go on."""

    def __init__(self, root: Path) -> None:
        configs = Configs(WEEK_MS, orders=RETENTION_HOURS * HOUR_MINUTES * MINUTE_MS)
        self.monitor = Monitor(root, configs=configs)
        self.cluster = self.monitor.cluster
        self.cluster.end_offsets = {PARTITION: 0}
        self.minutes = 0
        self.monitor.write(self.monitor.generation(1))
        for _ in range(30):
            self._pass(1)
            self.monitor.commit(p0=self.cluster.end_offsets[PARTITION])
        self.stopped_at_ms = self.cluster.now_ms
        empty = replace(metadata(2), current_state_timestamp_ms=self.stopped_at_ms)
        self.monitor.write(GroupMetadataWritten(Position(0, 2, self.stopped_at_ms), empty))
        self.cluster.states = {"g": EMPTY}
        self.samples = [self._hour(hour) for hour in range(1, 7 * DAY_HOURS)]

    def _hour(self, hour: int) -> Sample:
        if hour == 1:  # a sample right after the last commit, so the age of the first unread record is known
            self._pass(1)
        self._pass(HOUR_MINUTES - (hour == 1))
        report = self.report()
        sample = Sample(hour, (hour - 1) % DAY_HOURS, report.lag, [trouble.word for trouble in report.troubles])
        if hour % DAY_HOURS == 0:
            self.monitor.restart()
        return sample

    def _pass(self, minutes: int) -> None:
        """Let producers write and retention delete whole segments. Then take a sample."""
        self.minutes += minutes
        self.cluster.now_ms += minutes * MINUTE_MS
        self.cluster.end_offsets = {PARTITION: A_MINUTE * self.minutes}
        segment = SEGMENT_HOURS * HOUR_MINUTES
        expired = max(0, self.minutes - RETENTION_HOURS * HOUR_MINUTES) // segment * segment
        self.cluster.log_start_offsets = {PARTITION: A_MINUTE * expired}
        self.monitor.sampler.take_sample()

    def report(self) -> GroupReport:
        """Return the group's report."""
        state = self.monitor.monitor_state
        return state.reports(state.view(), is_fresh=True)["g"]

    def recover(self) -> GroupReport:
        """Let the group commit the log start offset. Return its report after two samples."""
        self.monitor.commit(p0=self.cluster.log_start_offsets[PARTITION])
        self._pass(1)
        self._pass(1)
        return self.report()


@pytest.fixture(scope="module")
def weekend(tmp_path_factory: pytest.TempPathFactory) -> Weekend:
    return Weekend(tmp_path_factory.mktemp("weekend"))


def deleted_hours(sample: Sample) -> float:
    """Return how many hours of unread records retention has deleted."""
    return (sample.lag.records_lost or 0) / (A_MINUTE * HOUR_MINUTES)


def test_a_group_that_stopped_stays_late_until_it_reads_again(weekend: Weekend) -> None:
    """Down on Friday, resolved on Saturday, records deleted on Monday: no alert fired.

    In the first sample after a start, the status is unknown, because the log was not read up to this sample yet.
    """
    for sample in weekend.samples:
        assert sample.lag.status == "STOP" or sample.since_start == 0, sample
        hours = sample.hours - deleted_hours(sample)
        assert sample.lag.records == A_MINUTE * HOUR_MINUTES * hours
        assert sample.lag.seconds == pytest.approx(3_600 * hours, rel=0.1), sample
        assert sample.lag.seconds_is_bound is False


def test_a_loss_is_announced_and_stays_until_the_group_commits_past_it(weekend: Weekend) -> None:
    """Retention of 3 days in segments of 6 hours. At the warning, the log start has never moved."""
    warned = [one.hours for one in weekend.samples if "losing soon" in one.troubles]
    lost = [one.hours for one in weekend.samples if "records lost" in one.troubles]
    assert warned[0] == RETENTION_HOURS, "after the lag in seconds has reached three days"
    assert RETENTION_HOURS < lost[0] <= RETENTION_HOURS + SEGMENT_HOURS, "the first segment is deleted"
    assert lost == list(range(lost[0], weekend.samples[-1].hours + 1)), "the loss never disappears"
    assert all(one.lag.records_lost for one in weekend.samples if one.hours >= lost[0])


def test_offsets_expire_a_week_after_the_group_became_empty(weekend: Weekend) -> None:
    """The time does not move while the group is Empty. The trouble appears on the last day.

    The listing of the first sample after a start is not known yet.
    """
    assert {one.lag.offsets_expire_ms for one in weekend.samples} == {weekend.stopped_at_ms + WEEK_MS}
    expiring = [one.hours for one in weekend.samples if "offsets expire" in one.troubles]
    assert expiring == list(range(6 * DAY_HOURS + 1, 7 * DAY_HOURS))


def test_the_group_is_well_after_it_commits_past_the_loss(weekend: Weekend) -> None:
    """The last test of this weekend."""
    report = weekend.recover()
    assert (report.lag.records_lost, report.lag.seconds_until_lost) == (0, pytest.approx(0, abs=24 * 3_600))
    assert "records lost" not in [trouble.word for trouble in report.troubles]


def test_a_marker_at_the_end_never_makes_a_group_late(tmp_path: Path) -> None:
    """A group has read everything. The last offset is a transaction marker, and the topic is quiet for days.

    In the first sample after a restart, the marker looked like a record that had waited for days.
    """
    monitor = Monitor(tmp_path)
    cluster = monitor.cluster
    cluster.end_offsets, cluster.next_records = {PARTITION: 101}, {PARTITION: 101}
    cluster.log_start_offsets = {PARTITION: 0}
    monitor.write(monitor.generation(1))
    monitor.commit(p0=100)
    for sample in range(1, 4 * DAY_HOURS):
        cluster.now_ms += HOUR_MINUTES * MINUTE_MS
        if sample == 2 * DAY_HOURS:
            cluster.log_start_offsets = {PARTITION: 101}  # retention deletes everything
        monitor.sampler.take_sample()
        view = monitor.monitor_state.view()
        lag = monitor.monitor_state.reports(view, is_fresh=True)["g"].lag
        assert lag.seconds in {0.0, None}, sample
        assert lag.status in {"OK", None}, sample
        assert lag.records_lost in {0, None}, sample
        if sample % 10 == 0:
            monitor.restart()


def test_a_loss_of_a_few_records_outlasts_a_restart(tmp_path: Path) -> None:
    """A fetch showed a record at the commit. Retention deleted it, so it cannot be fetched after the restart.

    The alert resolved itself at the next deployment of the monitor.
    """
    monitor = Monitor(tmp_path)
    cluster = monitor.cluster
    cluster.end_offsets, cluster.log_start_offsets = {PARTITION: 150}, {PARTITION: 0}
    monitor.write(monitor.generation(1))
    monitor.commit(p0=100)
    lost = []
    for log_start in (0, 105, 105, 105):
        cluster.now_ms += HOUR_MINUTES * MINUTE_MS
        cluster.log_start_offsets = {PARTITION: log_start}
        monitor.sampler.take_sample()
        view = monitor.monitor_state.view()
        lost.append(monitor.monitor_state.reports(view, is_fresh=True)["g"].lag.records_lost)
        if len(lost) == 2:
            monitor.restart()
    assert lost == [0, 5, 5, 5]


def test_settings_that_the_brokers_refuse_are_named_in_the_health(tmp_path: Path) -> None:
    """Without the optional permissions, two values are unknown. The user can see why."""
    configs = Configs(None)
    monitor = Monitor(tmp_path, configs=configs)
    monitor.cluster.end_offsets = {PARTITION: 150}
    monitor.commit(p0=100)
    monitor.pass_minutes(1)
    assert monitor.monitor_state.view().health.settings_not_known == ("offsets_retention", "topic_retention")
    configs.offsets_ms, configs.topics = WEEK_MS, {"orders": 1}
    monitor.pass_minutes(10)
    assert monitor.monitor_state.view().health.settings_not_known == ()


def test_the_polling_source_does_not_know_when_offsets_expire(tmp_path: Path) -> None:
    """Coordinators return neither the time of a commit nor the time of the Empty state. A guess could be days late."""
    monitor = Monitor(tmp_path, configs=Configs())
    monitor.cluster.states = {"g": EMPTY}
    monitor.commit(p0=0)
    expire_ms = []
    for source in ("offsets-topic", "admin-api"):
        monitor.monitor_state.put_health(source=source)
        monitor.pass_minutes(2)
        view = monitor.monitor_state.view()
        expire_ms.append(monitor.monitor_state.reports(view, is_fresh=True)["g"].lag.offsets_expire_ms)
    assert expire_ms == [START_MS + WEEK_MS, None]


def test_a_long_commit_gap_is_shown_while_it_lasts_and_for_the_window_after_it(tmp_path: Path) -> None:
    """The limit of the group is two minutes. The condition survives a restart, and ends ten minutes after it began."""
    monitor = Monitor(tmp_path, limits_of=lambda ids: dict.fromkeys(ids, GroupLimits(max_commit_gap_seconds=120)))
    monitor.cluster.states = {"g": "Stable"}
    monitor.sampler.take_sample()
    monitor.write(monitor.generation(1))
    monitor.commit(p0=0, p1=0)
    monitor.pass_minutes(1, records_a_minute=10)
    monitor.write(monitor.generation(2))
    monitor.pass_minutes(1, records_a_minute=10)
    assert monitor.active_conditions() == {}, "two minutes are allowed"
    monitor.pass_minutes(2, records_a_minute=10)
    gap = monitor.active_conditions()["long_commit_gap"]
    assert gap.startswith("no commits for 240 s around the rebalance at ")
    assert gap.endswith(" UTC; the limit is 120 s")
    monitor.commit(p0=40, p1=40)
    monitor.restart()
    monitor.pass_minutes(4, records_a_minute=10)
    monitor.commit(p0=80, p1=80)
    monitor.pass_minutes(3, records_a_minute=10)
    assert [*monitor.active_conditions()] == ["long_commit_gap"]
    monitor.commit(p0=110, p1=110)
    monitor.pass_minutes(3, records_a_minute=10)
    assert monitor.active_conditions() == {}
    assert [(name, is_active) for name, is_active, _ in monitor.condition_changes()] == [
        ("long_commit_gap", True),
        ("long_commit_gap", False),
    ]
