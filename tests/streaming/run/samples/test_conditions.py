"""Tests of conditions from a sample to the monitor state, the metrics and the table.

The sampler is the real one. Only the brokers are simulated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Any

import pyarrow as pa
import pytest

from assignors import TopicPartition, assignor_named
from streaming.combine.commits import COMMIT_SCHEMA
from streaming.config.settings import EvaluationSettings
from streaming.delta.on_disk import DeltaTables
from streaming.delta.stored import stored_rows
from streaming.delta.tables import GROUP_CONDITIONS, Table
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.lag.lag import MAYBE_ONLY_MARKERS, ClusterSample, LogEnds
from streaming.evaluation.lag.next_offsets import FetchFailure, FetchResult, TailFetch
from streaming.evaluation.lag.status import Status
from streaming.evaluation.limits import LimitsOf, default_limits
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.events import GroupEvent, GroupMetadataWritten, Position, TopicMetadata, TopicsSampled
from streaming.group.listing import GroupListing, ListedGroup, ListingGap
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.record_batches import Tail
from streaming.run.cluster_clock import ClusterClock
from streaming.run.log_integrity import LogWatch
from streaming.run.samples.conditions import GroupConditions, limits_of
from streaming.run.samples.feedback_writer import FeedbackWriter
from streaming.run.samples.incidents import Incidents
from streaming.run.samples.lag.lag_causes import LagCauses
from streaming.run.samples.lag.lag_tables import LagTables
from streaming.run.samples.lag.lag_watch import LagWatch
from streaming.run.samples.lag.retention_settings import RetentionSettings
from streaming.run.samples.readiness import Readiness, log_ends
from streaming.run.samples.sampler import Sampler
from streaming.run.samples.upkeep import Upkeep
from streaming.state.committed_offsets import CommittedOffsets
from streaming.state.monitor_state import MonitorState
from tests.streaming.delta.test_delta import open_tables
from tests.streaming.groups import member, metadata
from tests.streaming.log_records import commit_key
from tests.streaming.run.samples.lag.test_retention_settings import Configs
from tests.streaming.run.samples.test_readiness import INTERVAL_MS, MAX_UNREAD_MS
from tests.streaming.run.test_poller import Folder

MINUTE_MS = 60_000
START_MS = 1000 * MINUTE_MS
SHARED = [member("a", {"orders": [0]}), member("b", {"orders": [1]})]


class Cluster:
    """Simulated brokers and coordinators. `__consumer_offsets` has one partition, led by broker 1.

    `now_ms` is the broker's time. The monitor's clock is `clock_offset_ms` behind it. A test that changes
    `clock_offset_ms` sets the clock.
    """

    def __init__(self, clock_offset_ms: int = 0) -> None:
        self.now_ms = START_MS
        self.clock_offset_ms = clock_offset_ms
        self.clock = ClusterClock(
            "prod", lambda: self.now_ms - self.clock_offset_ms, lambda: START_MS - self.clock_offset_ms
        )
        self.partitions = 2
        self.topic_id: str | None = None
        self.end_offsets = {("orders", 0): 0, ("orders", 1): 0}
        self.log_start_offsets: dict[TopicPartition, int] = {}
        self.states: dict[str, str] = {}
        self.log_end = 0
        self.offsets_topic_id = "B3BDgJhtR2mEJtC2VAyvIQ"
        self.is_blocked = False
        self.last_stable: dict[TopicPartition, int] = {}
        self.next_records: dict[TopicPartition, int] = {}
        self.refused: set[str] = set()
        self.looks: list[TailFetch] = []

    def sample(self, _topics: Iterable[str]) -> ClusterSample:
        """Return the end offsets of all partitions."""
        ends, now_ms = LogEnds(self.log_end, self.log_end - self.is_blocked), self.clock.now_ms()
        topics = {"orders": TopicMetadata(self.partitions, now_ms, topic_id=self.topic_id)}
        return ClusterSample(
            now_ms,
            topics,
            dict(self.end_offsets),
            dict(self.log_start_offsets),
            {0: ends},
            1,
            offsets_topic_id=self.offsets_topic_id,
            offsets_topic_leaders={0: 1},
        )

    def last_stable_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each open transaction, or the end offset if there is none."""
        return {at: self.last_stable.get(at, self.end_offsets[at]) for at in partitions}

    def look(self, looks: Sequence[TailFetch]) -> dict[TailFetch, FetchResult]:
        """Return the next record of each fetch. Every offset has a record, except those before `next_records`."""
        self.looks += looks
        return {look: self._fetch(look) for look in looks}

    def _fetch(self, look: TailFetch) -> FetchResult:
        if look.topic in self.refused:
            return FetchFailure.REFUSED
        at = look.topic, look.partition
        next_record = max(look.from_offset, self.next_records.get(at, 0))
        return Tail(next_record, is_record=next_record < self.end_offsets[at], read_to=next_record)

    def list_groups(self) -> GroupListing:
        """List every group with its state."""
        groups = {name: ListedGroup("classic", "consumer", state, 1) for name, state in self.states.items()}
        return GroupListing(self.clock.now_ms(), groups)


class Monitor:
    """The sampler with a log that is read when a test calls `read`."""

    strategies = ("range",)
    """The setting `strategies`."""

    def __init__(
        self,
        root: Path,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        clock_offset_ms: int = 0,
        configs: Configs | None = None,
        limits_of: LimitsOf = default_limits,
    ) -> None:
        self.root, self.limits, self.configs, self.limits_of = root, limits, configs or Configs(None), limits_of
        self.cluster = Cluster(clock_offset_ms)
        self.records: dict[str, GroupState] = {}
        self.committed_offsets = CommittedOffsets()
        self.last_commits: dict[bytes, dict[str, Any]] = {}
        self.start()

    def start(self) -> None:
        """Start or restart. Groups and commits are restored as of the last batch."""
        self.monitor_state, self.tables = MonitorState(), open_tables(self.root / "tables")
        files, limits = Folder(self.root / "files"), self.limits
        self.monitor_state.put_batch(self.records.values(), [])
        self.read()
        settings = RetentionSettings("prod", self.configs)
        clock = self.cluster.clock
        self.lag_watch = LagWatch("prod", self.committed_offsets, files, limits, self.cluster, clock, settings)
        self.sampler = Sampler(
            cluster="prod",
            monitor_state=self.monitor_state,
            groups=self.cluster,  # type: ignore[arg-type]
            lag_watch=self.lag_watch,
            readiness=Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS),
            feedback_writer=FeedbackWriter(files),
            reconciler=None,
            assignors=None,
            log_watch=LogWatch("prod", self.monitor_state, files),
            conditions=GroupConditions("prod", self.monitor_state, self.tables, limits, self.limits_of),
            lag_causes=LagCauses("prod", self.monitor_state, self.tables),
            incidents=Incidents("prod", self.monitor_state, self.tables),
            lag_tables=LagTables("prod", self.monitor_state, self.tables, 3600),
            upkeep=Upkeep(self.tables, 90, 3600),
            interval_seconds=5,
        )

    def restart(self, *, is_rebuild: bool = False) -> None:
        """Stop and start. The state has only the last commit of each key. The samples come from their file.

        With `is_rebuild`, the checkpoint is new, so the files beside it are missing.
        """
        self.lag_watch.store()
        if is_rebuild:
            rmtree(self.root / "files")
        self.committed_offsets = CommittedOffsets()
        if self.last_commits:
            rows = list(self.last_commits.values())
            self.committed_offsets.apply(pa.Table.from_pylist(rows, schema=COMMIT_SCHEMA))
        self.start()
        self.lag_watch.restore()

    def read(self) -> None:
        """Read the log to its end."""
        self.monitor_state.put_health(positions={0: self.cluster.log_end})

    def write(self, *events: GroupEvent, group: str = "g") -> None:
        """Write events of a group and read them in one batch."""
        known = self.records.get(group, GroupState(GroupSnapshot(group)))
        sampled = TopicsSampled({"orders": TopicMetadata(self.cluster.partitions, self.cluster.clock.now_ms())})
        strategies = [*map(assignor_named, self.strategies)]
        self.records[group] = apply_batch(known, events, strategies).record
        self.records[group] = apply_batch(self.records[group], [sampled], strategies).record
        self.monitor_state.put_batch([self.records[group]], [])
        self.cluster.log_end += len(events)
        self.read()

    def generation(self, number: int, minutes_ago: float = 0) -> GroupEvent:
        """Return the record of a generation whose cause is unexplained: no member joined or left."""
        at = Position(0, number, int(self.cluster.now_ms - minutes_ago * MINUTE_MS))
        return GroupMetadataWritten(at, metadata(number, SHARED))

    def commit(self, **offsets: int) -> None:
        """Commit offsets of the group, given as `p0=7`."""
        rows = [
            {
                "offsets_topic_partition": 0,
                "key": commit_key("g", "orders", int(name[1:])),
                "offsets_topic_offset": self.cluster.log_end + number,
                "timestamp_ms": self.cluster.now_ms,
                "committed_offset": offset,
            }
            for number, (name, offset) in enumerate(offsets.items())
        ]
        self.committed_offsets.apply(pa.Table.from_pylist(rows, schema=COMMIT_SCHEMA))
        self.last_commits |= {row["key"]: row for row in rows}  # type: ignore[misc]
        self.cluster.log_end += len(rows)
        self.read()

    def pass_minutes(self, minutes: int, records_a_minute: int = 0) -> None:
        """Let time pass with one sample per minute, while producers write to both partitions."""
        for _ in range(minutes):
            self.cluster.now_ms += MINUTE_MS
            ends = self.cluster.end_offsets
            self.cluster.end_offsets = {at: offset + records_a_minute for at, offset in ends.items()}
            self.sampler.take_sample()

    def active_conditions(self) -> dict[str, str]:
        """Return the active conditions of `g` with their descriptions."""
        return {one.name: one.detail for one in self.monitor_state.view().conditions.get("g", ())}

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the table."""
        return list(stored_rows(str(self.root / "tables"), GROUP_CONDITIONS))

    def condition_changes(self) -> list[tuple[str, bool, int]]:
        """Return the rows of the table as (condition, is active, minute of its start)."""
        return [(row["condition"], row["active"], _minute(row["since_time"].timestamp())) for row in self.rows()]


def _minute(seconds: float) -> int:
    return round(seconds * 1000 - START_MS) // MINUTE_MS


@pytest.fixture
def monitor(tmp_path: Path) -> Monitor:
    started = Monitor(tmp_path)
    started.sampler.take_sample()
    return started


def storm(monitor: Monitor) -> None:
    """Write six generations within five minutes."""
    for number in range(6):
        monitor.pass_minutes(1)
        monitor.write(monitor.generation(number))


STORM = "rebalance_storm"


def test_a_condition_is_written_when_it_begins_and_when_it_ends(monitor: Monitor) -> None:
    storm(monitor)
    monitor.pass_minutes(3)
    detail = "5 rebalances in 10 minutes; __consumer_offsets shows no cause for 5 of them"
    assert monitor.active_conditions() == {STORM: detail}
    (row,) = monitor.rows()
    assert (row["cluster"], row["group_id"], row["active"], row["detail"]) == ("prod", "g", True, detail)
    assert row["since_time"] == row["sampled_time"] == row["read_up_to_time"]
    monitor.pass_minutes(8)
    assert monitor.active_conditions() == {}
    assert monitor.condition_changes() == [(STORM, True, 7), (STORM, False, 7)]


def test_a_restart_writes_no_row_again_and_keeps_the_start_time(monitor: Monitor) -> None:
    """The monitor was killed after it wrote the row. The next run compares with the last rows of the table."""
    storm(monitor)
    monitor.pass_minutes(1)
    monitor.start()
    monitor.pass_minutes(1)
    (condition,) = monitor.monitor_state.view().conditions["g"]
    assert _minute(condition.since_ms / 1000) == 7
    assert monitor.condition_changes() == [(STORM, True, 7)]
    monitor.pass_minutes(9)
    assert monitor.condition_changes() == [(STORM, True, 7), (STORM, False, 7)]


def test_a_condition_that_ended_while_no_monitor_ran_is_ended_by_the_next_start(monitor: Monitor) -> None:
    storm(monitor)
    monitor.pass_minutes(1)
    monitor.cluster.now_ms += 60 * MINUTE_MS
    monitor.start()
    monitor.pass_minutes(1)
    assert monitor.condition_changes() == [(STORM, True, 7), (STORM, False, 7)]


@pytest.mark.parametrize("is_new_checkpoint", [True, False])
def test_no_condition_ends_before_a_restarted_monitor_is_ready(monitor: Monitor, is_new_checkpoint: bool) -> None:
    """Rule: no verdict from a part of the log. A group that is not read yet is not deleted."""
    storm(monitor)
    monitor.pass_minutes(1)
    monitor.cluster.log_end += 5
    if is_new_checkpoint:
        monitor.records.clear()
    monitor.start()
    monitor.monitor_state.put_health(positions={0: 2})
    monitor.pass_minutes(2)
    assert (monitor.active_conditions(), monitor.condition_changes()) == ({}, [(STORM, True, 7)])


@pytest.mark.parametrize("is_committed", [True, False])
def test_an_append_that_raises_is_repeated_only_if_it_was_not_committed(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    """The response of an object store may get lost after the commit."""
    append = DeltaTables.append

    def append_and_raise(tables: DeltaTables, table: Table, rows: pa.Table) -> None:
        if is_committed:
            append(tables, table, rows)
        raise OSError("the store does not answer")

    storm(monitor)
    monkeypatch.setattr(DeltaTables, "append", append_and_raise)
    with suppress(OSError):
        monitor.pass_minutes(1)
    monkeypatch.undo()
    monitor.pass_minutes(1)
    assert monitor.condition_changes() == [(STORM, True, 7 if is_committed else 8)]


def test_the_lag_of_a_topic_with_transactions_stays_unknown_without_read_permission(tmp_path: Path) -> None:
    """One sample showed an open transaction. Before, 20 unread offsets after it were a lag, also after a restart."""
    monitor = Monitor(tmp_path)
    monitor.cluster.refused = {"orders"}
    monitor.cluster.end_offsets = {("orders", 0): 30, ("orders", 1): 30}
    monitor.commit(p0=10, p1=10)
    monitor.pass_minutes(1)
    monitor.cluster.last_stable = {("orders", 0): 29}
    monitor.pass_minutes(1)
    monitor.cluster.last_stable = {}
    for _ in range(2):
        monitor.pass_minutes(2)
        lag = monitor.monitor_state.view().lag
        assert lag is not None
        assert lag.partitions["lag"].to_pylist() == [None, None]
        assert lag.partitions["unknown_reason"].to_pylist() == [MAYBE_ONLY_MARKERS] * 2
        monitor.restart()


def test_a_transaction_marker_at_the_end_is_neither_a_stall_nor_a_silent_group(tmp_path: Path) -> None:
    """`evaluation.allowed_lag`: a topic of transactions ends in a marker, so its lag is always at least 1."""
    statuses = {}
    for allowed_lag in (0, 1):
        monitor = Monitor(tmp_path / str(allowed_lag), Limits(allowed_lag=allowed_lag))
        monitor.write(monitor.generation(1))
        for _ in range(9):
            monitor.commit(p0=7)
            monitor.cluster.end_offsets = {("orders", 0): 8}
            monitor.pass_minutes(1)
        lag = monitor.monitor_state.view().lag
        assert lag is not None
        statuses[allowed_lag] = [Status(status).name for status in lag.partitions["status"].to_pylist()]
    assert statuses == {0: ["STALL"], 1: ["OK"]}


def test_every_setting_reaches_the_limits() -> None:
    settings = EvaluationSettings(
        storm_window_seconds=1,
        storm_rebalances=2,
        flap_threshold=3,
        stuck_after_seconds=5,
        allowed_lag=6,
    )
    assert limits_of(settings) == Limits(1, 2, 3, stuck_after_seconds=5, allowed_lag=6)


def test_a_backlog_of_an_hour_read_in_one_batch_is_no_storm(monitor: Monitor) -> None:
    """Rule: a window ends at the time of the last record that was read."""
    monitor.write(*(monitor.generation(60 - minute, minute + 11) for minute in range(60, -1, -1)))
    monitor.pass_minutes(1)
    assert (monitor.active_conditions(), monitor.condition_changes()) == ({}, [])


def test_a_group_blocked_by_an_open_transaction_has_no_conditions_and_ends_none(monitor: Monitor) -> None:
    """An open transaction hides the group's newer records. So its current conditions are unknown."""
    storm(monitor)
    monitor.pass_minutes(1)
    monitor.cluster.is_blocked = True
    monitor.pass_minutes(30)
    assert (monitor.active_conditions(), monitor.condition_changes()) == ({}, [(STORM, True, 7)])
    monitor.cluster.is_blocked = False
    monitor.pass_minutes(1)
    assert monitor.condition_changes() == [(STORM, True, 7), (STORM, False, 7)]


@pytest.mark.parametrize(
    ("state", "condition", "gap"),
    [("CompletingRebalance", "stuck_rebalance", ["long_commit_gap"]), ("Stable", "silent_group", [])],
)
def test_a_group_that_stops_committing_while_records_arrive_has_a_condition(
    monitor: Monitor, state: str, condition: str, gap: list[str]
) -> None:
    """No record shows this condition. End offsets of the last minutes and the listing show it.

    The condition ends with the first commit. In a rebalance, the commit gap stays visible for the storm window.
    """
    monitor.cluster.states = {"g": state}
    monitor.write(monitor.generation(1))
    monitor.commit(p0=0, p1=0)
    monitor.pass_minutes(5, records_a_minute=10)
    assert monitor.active_conditions() == {}, "no condition in the first five minutes"
    monitor.pass_minutes(2, records_a_minute=10)
    assert [*monitor.active_conditions()] == [condition, *gap]
    assert (
        "no member committed for 7 minutes while records wait and new records arrive"
        in monitor.active_conditions()[condition]
    )
    monitor.commit(p0=70)
    monitor.cluster.states = {"g": "Stable"}
    monitor.pass_minutes(1, records_a_minute=10)
    assert [*monitor.active_conditions()] == gap
    assert [(name, is_active) for name, is_active, _ in monitor.condition_changes() if name == condition] == [
        (condition, True),
        (condition, False),
    ]


def test_a_stuck_rebalance_continues_after_an_incomplete_listing(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One broker did not answer one request. The condition ended, and the alert stopped for five minutes."""
    monitor.write(monitor.generation(1))
    monitor.cluster.states = {"g": "PreparingRebalance"}
    monitor.pass_minutes(7)
    with monkeypatch.context() as patched:
        gaps = (ListingGap(1, "timeout"),)
        patched.setattr(monitor.cluster, "list_groups", lambda: GroupListing(monitor.cluster.now_ms, {}, gaps))
        monitor.pass_minutes(1)
    assert monitor.active_conditions() == {}, "unknown"
    monitor.pass_minutes(1)
    assert monitor.active_conditions() == {"stuck_rebalance": "rebalance in progress for at least 8 minutes"}
    assert [is_active for _, is_active, _ in monitor.condition_changes()] == [True]


def test_a_restart_of_the_monitor_does_not_end_a_stuck_rebalance(monitor: Monitor) -> None:
    """After each restart, the condition and its incident ended, and began again five minutes later."""
    monitor.write(monitor.generation(1))
    monitor.commit(p0=0, p1=0)
    monitor.cluster.states = {"g": "PreparingRebalance"}
    monitor.pass_minutes(7)
    monitor.restart()
    monitor.pass_minutes(2)
    assert monitor.active_conditions() == {}, "unknown"
    monitor.pass_minutes(5)
    assert [*monitor.active_conditions()] == ["stuck_rebalance"]
    assert [is_active for _, is_active, _ in monitor.condition_changes()] == [True]
    monitor.cluster.states = {"g": "Stable"}
    monitor.restart()
    monitor.pass_minutes(1)
    assert [is_active for _, is_active, _ in monitor.condition_changes()] == [True, False]


def test_a_rebalance_that_listings_show_for_too_long_is_stuck(monitor: Monitor) -> None:
    monitor.write(monitor.generation(1))
    monitor.cluster.states = {"g": "PreparingRebalance"}
    monitor.pass_minutes(7)
    assert monitor.active_conditions() == {"stuck_rebalance": "rebalance in progress for at least 6 minutes"}
    monitor.cluster.states = {"g": "Stable"}
    monitor.pass_minutes(1)
    assert monitor.active_conditions() == {}
