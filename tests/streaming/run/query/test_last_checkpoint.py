"""Tests that a checkpoint is refused if a different checkpoint wrote the last rows of its cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.errors import STAYS
from streaming.run.query.last_checkpoint import CheckpointPassedError, LastCheckpoint
from streaming.spark.checkpoint import Identity
from tests.streaming.run.test_damaged_caches import UnreadableFolder
from tests.streaming.spark.test_checkpoint import LocalFiles, new_identity


@pytest.fixture
def last(tmp_path: Path) -> LastCheckpoint:
    return LastCheckpoint(lambda: LocalFiles(tmp_path), "eu", "offsets-topic")


def created(last: LastCheckpoint) -> Identity:
    return new_identity("eu", 2, after=last.read())


def start(last: LastCheckpoint, identity: Identity) -> None:
    last.take(identity, "/checkpoint")


def test_an_earlier_checkpoint_is_refused_after_a_new_one_was_used(last: LastCheckpoint) -> None:
    """Rule 3. Before, a change of paths.checkpoint and back wrote the rows of the time between twice."""
    earlier = created(last)
    start(last, earlier)
    new = created(last)
    start(last, new)
    with pytest.raises(CheckpointPassedError, match="run `rebalance-monitor rebuild`") as refused:
        last.take(earlier, "/checkpoint")
    assert len(str(refused.value).splitlines()) == 1
    assert refused.value.exit_code == STAYS
    start(last, new)


def test_a_rebuild_that_was_not_started_yet_is_followed_by_either_checkpoint(last: LastCheckpoint) -> None:
    """Rule 2. A rebuild that fails at its end leaves the earlier checkpoint in its place."""
    earlier = created(last)
    start(last, earlier)
    rebuilt = created(last)
    start(last, earlier)
    rebuilt_again = created(last)
    start(last, rebuilt_again)
    with pytest.raises(CheckpointPassedError):
        last.take(rebuilt, "/checkpoint")


def test_other_clusters_and_the_other_source_have_their_own_checkpoints(tmp_path: Path, last: LastCheckpoint) -> None:
    start(last, created(last))
    for cluster, source in (("us", "offsets-topic"), ("eu", "admin-api")):
        other = LastCheckpoint(lambda: LocalFiles(tmp_path), cluster, source)
        start(other, new_identity(cluster, 2))


def test_a_checkpoint_of_an_earlier_version_is_accepted(last: LastCheckpoint) -> None:
    """Its tables have no such file."""
    start(last, new_identity("eu", 2))


def test_if_the_file_cannot_be_read_the_monitor_continues_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Rule 4, as for a second writer."""
    last = LastCheckpoint(lambda: UnreadableFolder(tmp_path), "eu", "offsets-topic")  # type: ignore[arg-type, return-value]
    last.take(created(last), "/checkpoint")
    assert "eu: cannot detect rows of a different checkpoint" in caplog.text
