"""Tests of the poller with a query that reads its files late, twice, or after a restart."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import pytest
from kafka.errors import KafkaConnectionError

from streaming.combine.combiner import PARTITION_KIND
from streaming.combine.commits import COMMIT_SCHEMA
from streaming.combine.partition_state import PartitionBatch, decode_partition_event, table_of
from streaming.evaluation.lag.lag import ClusterSample
from streaming.events import POLLED_PARTITION
from streaming.group.listing import (
    CLUSTER_NOT_DESCRIBABLE,
    GROUP_TYPE_NOT_KNOWN,
    UNSUPPORTED_VERSION,
    DescribedGroup,
    Description,
    GroupListing,
    GroupNotFound,
    ListedGroup,
    ListingGap,
    OffsetsByPartition,
    Unanswered,
)
from streaming.run.poller import Poller
from streaming.run.query.batches import polled_positions
from streaming.spark.files import Files
from streaming.state.committed_offsets import CommittedOffsets
from streaming.state.monitor_state import MonitorState
from tests.streaming.polled.answers import START_MS, classic, classic_member
from tests.streaming.polled.test_differences import State

ALONE = classic(classic_member("a", [0]))
SHARED = classic(classic_member("a", [0]), classic_member("b", [1]))
LOADING = ListingGap(1, "coordinator_load_in_progress")


class Folder(Files):
    """Files on the local disk. Hadoop's client would need a JVM."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, content: bytes) -> None:
        """Write the file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None if the file does not exist."""
        path = self.root / name
        return path.read_bytes() if path.exists() else None

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder."""
        return sorted(path.name for path in (self.root / folder).glob("*"))


class Cluster:
    """Simulated answers of `Groups`. A real broker cannot be made to load its groups on demand."""

    def __init__(self) -> None:
        self.groups: dict[str, DescribedGroup] = {}
        self.offsets: dict[str, dict[tuple[str, int], int]] = {}
        self.gaps: tuple[ListingGap, ...] = ()
        self.is_away = False
        self.refused: dict[str, Unanswered] = {}
        self.refused_offsets: dict[str, Unanswered] = {}
        self.described: list[str] = []
        self.during_listing: Callable[[], None] = lambda: None

    def list_groups(self) -> GroupListing:
        """List every group."""
        if self.is_away:
            raise KafkaConnectionError("away")
        self.during_listing()
        listed = {name: ListedGroup(one.group_type, "consumer", one.state, 1) for name, one in self.groups.items()}
        listed.update(dict.fromkeys(self.refused, ListedGroup("share", "share", "Stable", 1)))
        return GroupListing(START_MS, listed, self.gaps)

    def describe_groups(self, group_types: Mapping[str, str | None]) -> Mapping[str, Description]:
        """Describe these groups."""
        self.described += group_types
        known: Mapping[str, Description] = {**self.groups, **self.refused}
        return {group_id: known.get(group_id, GroupNotFound()) for group_id in group_types}

    def group_offsets(self, ids: Collection[str]) -> Mapping[str, OffsetsByPartition | Unanswered]:
        """Return the commits of these groups."""
        return {group_id: self.refused_offsets.get(group_id, dict(self.offsets.get(group_id, {}))) for group_id in ids}


class Monitor:
    """The poller, its files, and a query that reads them when a test calls `batch`."""

    def __init__(self, folder: Path) -> None:
        self.cluster = Cluster()
        self.files = Folder(folder)
        self.state = State()
        self.now_ms = START_MS
        self.start()

    def start(self) -> None:
        """Start or restart. The monitor state and committed offsets are restored as of the last batch."""
        self.monitor_state, self.committed_offsets = MonitorState(), CommittedOffsets()
        for partition in self.state.partition_states.values():
            self.committed_offsets.apply(table_of(partition.commits, COMMIT_SCHEMA))
        self.show()
        self.poller = Poller(
            cluster="prod",
            groups=self.cluster,  # type: ignore[arg-type]
            monitor_state=self.monitor_state,
            committed_offsets=self.committed_offsets,
            files=self.files,
            now_ms=lambda: self.now_ms,
            interval_seconds=5,
            stale_after_seconds=30,
        )

    def poll(self) -> list[str]:
        """Poll one second after the last poll, and return the names of new files."""
        before = self.files.names("feedback")
        self.now_ms += 1000
        self.poller.poll()
        return [name for name in self.files.names("feedback") if name not in before]

    def batch(self) -> None:
        """Let the query read all files. It does not remove them, because Spark also removes them later."""
        for name in self.files.names("feedback"):
            lines = (self.files.root / "feedback" / name).read_text().splitlines()
            parsed = [json.loads(line) for line in lines]
            rows = tuple((row["state_kind"], row["state_key"], base64.b64decode(row["payload"])) for row in parsed)
            self.state.take(rows)
            for partition, _, payload in rows:
                if partition == PARTITION_KIND and isinstance(event := decode_partition_event(payload), PartitionBatch):
                    self.committed_offsets.apply(table_of(event.commits, COMMIT_SCHEMA))
        self.show()

    def show(self) -> None:
        """Put the query's state into the monitor state, positions last, as `BatchSink` does."""
        self.monitor_state.put_batch(self.state.records.values(), self.state.partition_states.values())
        self.monitor_state.put_health(positions=polled_positions(self.state.partition_states))

    def target(self) -> int | None:
        """Return the position that readiness waits for."""
        targets = self.poller.targets(ClusterSample(0))
        return None if targets is None else targets[POLLED_PARTITION]


@pytest.fixture
def monitor(tmp_path: Path) -> Monitor:
    return Monitor(tmp_path)


def test_a_change_is_sent_once_and_without_changes_there_is_no_file(monitor: Monitor):
    """Unchanged groups cause no file."""
    monitor.cluster.groups, monitor.cluster.offsets = {"g": ALONE}, {"g": {("t", 0): 4}}
    assert len(monitor.poll()) == 1
    monitor.batch()
    assert monitor.poll() == []
    monitor.cluster.offsets["g"]["t", 0] = 5
    assert len(monitor.poll()) == 1
    monitor.batch()
    assert monitor.state.rows_reported == 1
    assert monitor.state.known().commits == {"g": {("t", 0): 5}}


def test_no_coordinator_is_asked_until_the_query_read_the_last_answer(monitor: Monitor):
    """The state does not contain the last answers yet. A second poll would send them again and count a change twice."""
    monitor.cluster.groups = {"g": ALONE}
    monitor.poll()
    monitor.batch()
    monitor.cluster.groups = {"g": SHARED}
    monitor.poll()
    asked = len(monitor.cluster.described)
    assert monitor.poll() == []
    assert len(monitor.cluster.described) == asked
    monitor.batch()
    assert monitor.poll() == []
    assert monitor.state.records["g"].snapshot.totals.rebalances == 1


def test_a_lost_file_is_sent_again(monitor: Monitor):
    """Level-triggered: each poll compares with the state, so it finds what the state lacks. No poll waits for ever."""
    monitor.cluster.groups = {"g": ALONE}
    [lost] = monitor.poll()
    (monitor.files.root / "feedback" / lost).unlink()
    assert len(monitor.poll()) == 1
    monitor.batch()
    assert monitor.state.records["g"].snapshot.state == "Stable"


@pytest.mark.parametrize("batch_was_done", [True, False])
def test_a_restart_counts_nothing_twice_whether_or_not_the_last_file_was_read(monitor: Monitor, batch_was_done: bool):
    """Rule 3: the monitor was killed before the batch, or after the batch and before the file was removed."""
    monitor.cluster.groups = {"g": ALONE}
    monitor.poll()
    monitor.batch()
    monitor.cluster.groups = {"g": SHARED}
    monitor.poll()
    if batch_was_done:
        monitor.batch()
    monitor.start()
    monitor.poll()
    monitor.batch()
    monitor.poll()
    monitor.batch()
    assert monitor.state.records["g"].snapshot.totals.rebalances == 1
    assert monitor.state.rows_reported == 2


def test_readiness_waits_for_the_first_complete_poll_to_go_through_the_query(monitor: Monitor):
    """A coordinator that loads hides its groups. So the monitor would show an incomplete cluster."""
    monitor.cluster.gaps = (LOADING,)
    assert monitor.poll() == []
    assert monitor.target() is None
    assert not monitor.poller.is_fresh()
    monitor.cluster.gaps = ()
    assert len(monitor.poll()) == 1
    target = monitor.target()
    assert target is not None
    assert polled_positions(monitor.state.partition_states) == {}
    monitor.batch()
    assert polled_positions(monitor.state.partition_states) == {POLLED_PARTITION: target}
    assert monitor.poller.is_fresh()
    assert monitor.poll() == []


def test_after_a_reset_only_a_poll_that_began_later_sets_the_target(monitor: Monitor):
    """The machine was suspended during a poll. The answers from before the suspension made the cluster ready."""
    monitor.poll()
    monitor.batch()
    first = monitor.target()
    assert first is not None
    monitor.poller.start_over()
    assert monitor.target() is None
    monitor.cluster.during_listing = monitor.poller.start_over
    monitor.poll()
    monitor.batch()
    assert monitor.target() is None, "the poll began before the second reset"
    monitor.cluster.during_listing = lambda: None
    assert len(monitor.poll()) == 1, "the query reads a row, although nothing changed"
    target = monitor.target()
    assert target is not None
    assert target > first


def test_a_poll_from_before_a_suspension_is_not_fresh(monitor: Monitor, monkeypatch: pytest.MonkeyPatch):
    """CLOCK_MONOTONIC stops during a suspension. So a poll that was an hour old was fresh."""
    monitor.poll()
    assert monitor.poller.is_fresh()
    monkeypatch.setattr(time, "clock_gettime", lambda clock, now=time.clock_gettime: now(clock) + 3_600)
    assert not monitor.poller.is_fresh()


def test_a_missing_permission_is_reported_and_does_not_delay_readiness(monitor: Monitor):
    """The permission may never be granted."""
    monitor.cluster.gaps = (ListingGap(None, CLUSTER_NOT_DESCRIBABLE),)
    monitor.poll()
    assert monitor.target() is not None
    assert "hidden_groups" in monitor.monitor_state.view().health.not_known


@pytest.mark.parametrize("refusal", [UNSUPPORTED_VERSION, GROUP_TYPE_NOT_KNOWN])
def test_a_group_that_cannot_be_described_stays_unknown_and_does_not_delay_readiness(
    monitor: Monitor, caplog: pytest.LogCaptureFixture, refusal: Unanswered
):
    """A share group on Kafka 4.0: the cluster was never ready, and the log did not contain the reason."""
    monitor.cluster.groups, monitor.cluster.refused = {"g": ALONE}, {"shared": refusal}
    monitor.poll()
    monitor.batch()
    assert monitor.target() is not None
    assert monitor.poller.is_fresh()
    assert monitor.state.records.keys() == {"g"}, "a group without a state is not shown as empty"
    assert "hidden_groups" in monitor.monitor_state.view().health.not_known
    monitor.poll()
    [line] = caplog.messages
    assert line == (
        "prod: the brokers or the monitor do not support some groups, so their states are unknown:"
        f" {refusal.reason} (groups: 1, for example 'shared')"
    )


def test_a_group_counts_as_refused_until_the_query_has_read_its_new_commits(monitor: Monitor):
    """When the permission was granted again, the first sample still showed the lag of the old commits."""

    def refused() -> set[str]:
        return set(monitor.monitor_state.view().health.refused_groups)

    monitor.cluster.groups, monitor.cluster.offsets = {"g": ALONE}, {"g": {("t", 0): 4}}
    monitor.poll()
    monitor.batch()
    monitor.cluster.refused_offsets = {"g": Unanswered("group_authorization_failed")}
    monitor.poll()
    assert refused() == {"g"}
    monitor.cluster.refused_offsets, monitor.cluster.offsets = {}, {"g": {("t", 0): 900}}
    assert len(monitor.poll()) == 1
    assert refused() == {"g"}, "the query has not read the commits"
    monitor.batch()
    monitor.poll()
    assert refused() == set()


def test_the_reason_of_an_incomplete_poll_is_logged_once_until_a_poll_is_complete(
    monitor: Monitor, caplog: pytest.LogCaptureFixture
):
    """The cluster was not ready without a log line. A line per poll would hide all other lines."""
    line = "prod: a poll is incomplete; trying again: coordinator_load_in_progress"
    monitor.cluster.gaps = (LOADING, ListingGap(None, CLUSTER_NOT_DESCRIBABLE))
    monitor.poll()
    monitor.poll()
    assert caplog.messages == [line]
    monitor.cluster.gaps = ()
    monitor.poll()
    monitor.batch()
    monitor.cluster.gaps = (LOADING,)
    monitor.poll()
    assert caplog.messages == [line, line]


def test_a_group_that_no_coordinator_has_ends_with_its_commits(monitor: Monitor):
    """The answer takes the place of the tombstone in the log."""
    monitor.cluster.groups, monitor.cluster.offsets = {"g": classic()}, {"g": {("t", 0): 4}}
    monitor.poll()
    monitor.batch()
    monitor.cluster.groups.clear()
    assert len(monitor.poll()) == 1
    monitor.batch()
    assert monitor.state.records["g"].snapshot.is_over
    assert monitor.state.known().commits == {}
    assert monitor.poll() == []


def test_brokers_that_do_not_answer_change_nothing(monitor: Monitor):
    """A poll without an answer does not count."""
    monitor.cluster.groups = {"g": ALONE}
    monitor.poll()
    monitor.batch()
    monitor.cluster.is_away = True
    with pytest.raises(KafkaConnectionError):
        monitor.poll()
    assert monitor.state.records["g"].snapshot.state == "Stable"


def test_read_up_to_is_the_last_complete_poll_whose_answers_were_read(monitor: Monitor):
    """The wall clock does not count: a coordinator may not have answered, or the query has not read the answers."""

    def read_up_to_ms() -> int | None:
        return monitor.monitor_state.view().polled.read_up_to_ms

    assert read_up_to_ms() is None
    monitor.cluster.groups = {"g": ALONE}
    monitor.poll()
    assert read_up_to_ms() is None, "the query has not read the answers yet"
    monitor.batch()
    first_ms = monitor.now_ms
    assert read_up_to_ms() == first_ms
    monitor.poll()
    assert read_up_to_ms() == first_ms + 1000, "without changes the state is as of this poll"
    monitor.cluster.gaps = (LOADING,)
    monitor.poll()
    assert read_up_to_ms() == first_ms + 1000, "a coordinator did not answer"
    monitor.cluster.gaps = ()
    monitor.cluster.groups = {"g": SHARED}
    monitor.poll()
    monitor.batch()
    assert read_up_to_ms() == first_ms + 3000
