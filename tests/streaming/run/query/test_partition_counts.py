"""Tests of the stored partition counts of `__consumer_offsets`: one list per checkpoint."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from streaming.events import OFFSETS_TOPIC
from streaming.run.query.partition_counts import STORED_COUNTS, own_partitions
from tests.streaming.run.test_poller import Folder


def test_counts_survive_restarts_and_a_changed_count_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A change is rare, and every group loses its offsets. The on-call engineer needs the time of the change."""
    caplog.set_level(logging.WARNING)
    counts = [own_partitions("eu", Folder(tmp_path), view).counts for view in (50, 50, 60, 60)]
    assert counts == [(50,), (50,), (50, 60), (50, 60)]
    (line,) = caplog.messages
    assert line.startswith(f"eu: {OFFSETS_TOPIC} has 60 partitions now, and had 50 before.")


def test_without_a_stored_count_it_is_taken_from_the_checkpoints_offsets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = Folder(tmp_path)
    files.write("query/commits/7", b"v1\n{}")
    files.write("query/offsets/7", b"v1\n{}\n" + json.dumps({OFFSETS_TOPIC: {"0": 5, "1": 0, "2": 9}}).encode())
    assert own_partitions("eu", files, 5).counts == (3, 5)
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("stored", [b"", b"[0]", b"[-3, 50]", b'["50"]', b"{}", b"\xff", b"[50"])
def test_a_damaged_file_is_replaced_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, stored: bytes
) -> None:
    files = Folder(tmp_path)
    files.write(STORED_COUNTS, stored)
    assert own_partitions("eu", files, 50).counts == (50,)
    assert [f"{STORED_COUNTS} is damaged" in line for line in caplog.messages] == [True]
    assert own_partitions("eu", files, 50).counts == (50,)
    assert len(caplog.messages) == 1
