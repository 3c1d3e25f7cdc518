"""Tests that a new checkpoint continues from the last rows of existing tables."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given

from assignors import assignor_named
from streaming.delta.rows import arrow_table
from streaming.delta.tables import REBALANCES
from streaming.evaluation.group_update import GROUP_CODEC, GroupState, apply_batch
from streaming.evaluation.rebalances.rebalance_history import RebalanceHistory
from streaming.events import GroupEvent
from streaming.group.codec import StateVersionError
from streaming.group.snapshot import GroupSnapshot
from streaming.run.query.prepare import InitialState, _read_bootstrap, _rebalance_history, latest_by_group
from streaming.spark.checkpoint import CheckpointDamagedError
from streaming.spark.checkpoint_files import checksum
from tests.streaming.evaluation.rebalances.test_rebalance_history import generations
from tests.streaming.run.test_poller import Folder
from tests.streaming.spark.test_checkpoint import LocalFiles
from tests.streaming.table_rows import update_rows


@given(generations())
def test_totals_are_restored_from_the_last_row_of_a_group(events: list[GroupEvent]) -> None:
    """Counters continue after `rebuild`, although the log may have lost the counted records."""
    update = apply_batch(GroupState(GroupSnapshot("g")), events, [assignor_named("range")])
    rows = arrow_table(REBALANCES, update_rows("c", [update], {})[REBALANCES]).to_pylist()
    rebalance_history = _rebalance_history(max(rows, key=lambda row: row["offsets_topic_offset"], default=None))
    assert rebalance_history.totals == update.record.rebalance_history.totals
    assert rebalance_history.reported_up_to == max((row["offsets_topic_offset"] for row in rows), default=-1)


def test_the_latest_row_of_a_group_counts_also_after_it_moved_to_a_shorter_partition() -> None:
    """Offsets of two partitions cannot be compared. Here the row with the greater offset is older than the move."""
    rows = [
        {"group_id": "g", "offsets_topic_partition": partition, "offsets_topic_offset": offset, "record_time": time}
        for partition, offset, time in ((12, 9_000, 100), (42, 3, 200))
    ]
    for ordered_rows in (rows, rows[::-1]):
        assert latest_by_group(ordered_rows) == {"g": rows[1]}


def test_a_group_without_a_row_starts_an_empty_rebalance_history() -> None:
    assert _rebalance_history(None) == RebalanceHistory()


def test_initial_states_of_a_newer_monitor_are_refused_before_the_query_starts(tmp_path: Path) -> None:
    """Spark's workers decode these states. An error in a worker would start the query again and again."""
    (tmp_path / "origin").mkdir()
    newer = InitialState(GROUP_CODEC.version + 1, {"g": b""})
    (tmp_path / "origin" / "seeds").write_bytes(msgspec.msgpack.encode(newer))
    with pytest.raises(StateVersionError, match=f"has version {newer.version}, but this monitor reads"):
        _read_bootstrap(Folder(tmp_path), {})


@pytest.mark.parametrize("stored", [None, b"", bytes(8), bytes(24)], ids=["removed", "emptied", "truncated", "garbage"])
def test_positions_that_do_not_match_their_checksum_are_refused(tmp_path: Path, stored: bytes | None) -> None:
    """On remote storage, nothing else checks them. With other positions, rows would be written twice."""
    name = f"origin/{REBALANCES.name}.positions"
    files = LocalFiles(tmp_path)
    if stored is not None:
        files.write(name, stored)
    with pytest.raises(CheckpointDamagedError, match=rf"{name} is missing or has unexpected content.*`rebalance-mon"):
        _read_bootstrap(files, {name: checksum(bytes(range(24)))})
