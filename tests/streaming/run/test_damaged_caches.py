"""Tests that the monitor drops damaged caches next to the checkpoint with one warning, and starts."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.run.log_integrity import STORED_ID, LogWatch
from streaming.run.samples.lag.lag_watch import STORED, LagWatch
from streaming.run.samples.lag.retention_settings import RetentionSettings
from streaming.state.committed_offsets import CommittedOffsets
from streaming.state.monitor_state import MonitorState
from tests.streaming.run.samples.lag.test_retention_settings import Configs
from tests.streaming.run.samples.test_conditions import Cluster
from tests.streaming.run.test_poller import Folder
from tests.streaming.spark.checkpoints import empty, fill_with_garbage, truncate


class UnreadableFolder(Folder):
    """A folder that belongs to a different user."""

    def read(self, name: str) -> bytes | None:
        """Raise PermissionError."""
        raise OSError(errno.EACCES, "Permission denied", name)


@pytest.mark.parametrize("damage", [empty, truncate, fill_with_garbage])
def test_damaged_samples_are_dropped_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None]
) -> None:
    """The samples are only a cache. But a damaged one ended each start in a traceback."""
    files = Folder(tmp_path)
    lag_watch(files).store()
    damage(tmp_path / STORED)
    with caplog.at_level(logging.WARNING):
        lag_watch(files).restore()
    (line,) = caplog.messages
    assert line.startswith("eu: samples/lag cannot be read and is ignored. Lag in seconds is unknown for some time: ")


def test_samples_of_a_different_version_are_dropped_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The old message asked to delete a file and did not name it."""
    files = Folder(tmp_path)
    lag_watch(files).store()
    stored = (tmp_path / STORED).read_bytes()
    (tmp_path / STORED).write_bytes(stored.replace(b"\xa4ends\x92\x01", b"\xa4ends\x92\x63"))
    assert (tmp_path / STORED).read_bytes() != stored
    lag_watch(files).restore()
    assert "have version 99" in caplog.text


def test_samples_that_cannot_be_read_are_dropped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lag_watch(UnreadableFolder(tmp_path)).restore()
    assert len(caplog.messages) == 1
    assert "Permission denied" in caplog.text


def lag_watch(files: Folder) -> LagWatch:
    cluster, settings = Cluster(), RetentionSettings("eu", Configs())
    return LagWatch("eu", CommittedOffsets(), files, Limits(), cluster, cluster.clock, settings)


OLD, NEW = "B3BDgJhtR2mEJtC2VAyvIQ", "Yzm9gVTsQ7GnpBNcXPE4Bw"


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        (b"", "emptied"),
        (
            OLD[:11].encode(),
            "truncated: it was a different id, so the log looked recreated and the cluster was never ready again",
        ),
        (b"\xff" * 22, "garbage"),
    ],
)
def test_a_damaged_topic_id_is_dropped_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, stored: bytes, why: str
) -> None:
    """A truncated id is not an id. The monitor took it for the id of a different topic."""
    (tmp_path / STORED_ID).write_bytes(stored)
    monitor_state = MonitorState()
    LogWatch("eu", monitor_state, Folder(tmp_path)).report_topic_id(NEW, {0: 7})
    assert not monitor_state.view().health.rewound, why
    assert (tmp_path / STORED_ID).read_text() == NEW
    assert len(caplog.messages) == 1
    assert "offsets_topic_id is damaged" in caplog.text


def test_a_topic_id_that_cannot_be_read_is_dropped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    monitor_state = MonitorState()
    LogWatch("eu", monitor_state, UnreadableFolder(tmp_path)).report_topic_id(NEW, {0: 7})
    assert not monitor_state.view().health.rewound
    assert len(caplog.messages) == 1
