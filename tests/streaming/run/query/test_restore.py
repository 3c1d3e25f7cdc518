"""Tests of a run that starts in a process in which an earlier run has already watched the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.combine.partition_state import PartitionSnapshot
from streaming.config.load import load_settings
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag import ClusterSample, LogEnds
from streaming.group.snapshot import GroupSnapshot
from streaming.integrity.log_integrity import find_backward_positions
from streaming.run.query import restore as restoring
from streaming.run.query.restore import restore
from streaming.run.samples.readiness import Readiness, log_ends
from streaming.spark.checkpoint import CHECKPOINT_VERSION, Identity, write_identity
from streaming.state.committed_offsets import CommittedOffsets
from streaming.state.monitor_state import MonitorState
from tests.streaming.groups import advanced, written
from tests.streaming.run.samples.test_readiness import INTERVAL_MS, MAX_UNREAD_MS
from tests.streaming.run.test_poller import Folder

SAMPLE = ClusterSample(1, offsets_topic={0: LogEnds(50, 50)}, offsets_topic_partitions=1, offsets_topic_leaders={0: 1})


class Checkpoint(Folder):
    """A checkpoint on the local disk. `commit` adds the files of a committed batch."""

    def __init__(self, root: Path, checkpoint_id: str) -> None:
        super().__init__(root)
        write_identity(self, Identity(CHECKPOINT_VERSION, checkpoint_id, "default", 2))

    def uri(self, name: str) -> str:
        """Return the path of a file."""
        return str(self.root / name)

    def commit(self, batch_id: int, position: int) -> None:
        """Commit a batch that ends at this position in partition 0."""
        self.write(f"query/offsets/{batch_id}", f'v1\n{{"__consumer_offsets":{{"0":{position}}}}}'.encode())
        self.write(f"query/commits/{batch_id}", b"v1\n{}")


def start(monitor_state: MonitorState, checkpoint: Checkpoint) -> None:
    """Restore a checkpoint, as each run does at its start."""
    restore(None, load_settings(None), checkpoint, monitor_state, CommittedOffsets())  # type: ignore[arg-type]


def is_ready(monitor_state: MonitorState) -> bool:
    """Return the readiness after a sample, before the query of the run has ended a batch."""
    readiness = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS)
    readiness.start_over()
    before = monitor_state.view().health
    return monitor_state.put_readiness(
        ready=readiness.after(before.positions, SAMPLE, is_evaluated=True), before=before
    )


@pytest.fixture
def monitor_state(tmp_path: Path) -> MonitorState:
    """Return the state of a cluster that was ready with the checkpoint `old`. Then its run failed."""
    state = MonitorState()
    start(state, Checkpoint(tmp_path / "old", "old"))
    group = GroupState(advanced([written(0, 1)], GroupSnapshot("deleted-since")))
    state.put_batch([group], [PartitionSnapshot(0, 49)])
    state.put_health(positions={0: 50}, folders={"tables": "/tables"})
    state.put_sample(SAMPLE, None)
    assert is_ready(state)
    state.count_table_write_failure()
    state.put_batch_end(0.5, 1_000)
    state.put_health(ready=False, query_restarts=3)
    return state


def test_after_a_rebuild_in_a_running_process_the_cluster_is_not_ready_until_the_log_is_read(
    monitor_state: MonitorState, tmp_path: Path
) -> None:
    """The positions of the old checkpoint made the cluster ready before the new query had read a record.

    The lag table then got a row `offset_deleted` for every partition. The first batch ended before the old positions,
    so the log seemed to be truncated, and the cluster did not become ready again.
    """
    start(monitor_state, Checkpoint(tmp_path / "new", "new"))
    view = monitor_state.view()
    assert not is_ready(monitor_state)
    assert not find_backward_positions(view.health.positions, {0: 20})
    assert (view.groups, view.partition_states, view.sample) == ({}, {}, None)
    assert not view.health.was_ready
    monitor_state.put_health(positions={0: 50})
    assert is_ready(monitor_state)


def test_a_new_checkpoint_does_not_decrease_the_counters_of_the_process(
    monitor_state: MonitorState, tmp_path: Path
) -> None:
    """Prometheus treats a smaller value of a counter as a restart of the process, and adds the whole new value."""
    before = monitor_state.view().health
    start(monitor_state, Checkpoint(tmp_path / "new", "new"))
    health = monitor_state.view().health
    assert (health.query_restarts, health.table_write_failures, health.times_ready) == (3, 1, 1)
    assert (health.batch_durations, health.folders) == (before.batch_durations, before.folders)


@pytest.mark.parametrize(("checkpoint_id", "is_kept"), [("old", True), ("other", False)])
def test_only_a_new_try_with_the_same_checkpoint_keeps_the_values_of_the_last_try(
    monitor_state: MonitorState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint_id: str, is_kept: bool
) -> None:
    """Pages and totals stay while a broker is down. Records that a rewound partition lost are still missing."""
    monitor_state.put_rewound([7])
    checkpoint = Checkpoint(tmp_path / checkpoint_id, checkpoint_id)
    checkpoint.commit(4, 30)
    monkeypatch.setattr(restoring, "stored_state", lambda *_: ([], []))
    start(monitor_state, checkpoint)
    view = monitor_state.view()
    assert view.health.positions == {0: 30}
    assert (view.health.was_ready, bool(view.health.rewound), bool(view.groups)) == (is_kept, is_kept, is_kept)


def test_a_batch_that_was_applied_but_not_committed_does_not_make_the_next_try_ready(
    monitor_state: MonitorState, tmp_path: Path
) -> None:
    """Spark repeats the first batch. The commits of this batch are unknown until then, but the positions were kept."""
    start(monitor_state, Checkpoint(tmp_path / "old", "old"))
    assert not is_ready(monitor_state)
