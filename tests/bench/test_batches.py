"""Tests of the times and rates from the files that Spark writes into a checkpoint."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.bench.batches import Batch, BatchLog, records_per_second, second_half_per_second, seconds_at

if TYPE_CHECKING:
    from pathlib import Path

THREE = (Batch(0, 10.0, 20.0, 100), Batch(1, 21.0, 22.0, 100), Batch(2, 22.0, 24.0, 300))
"""A batch with 100 records in 10 s, a batch without records, and a batch with 200 records in 2 s."""


def _plan(folder: Path, batch_id: int, started_ms: int, positions: dict[str, int]) -> None:
    sources = [json.dumps({"__consumer_offsets": positions}), "-"]
    lines = ["v1", json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": started_ms}), *sources]
    (folder / "offsets" / str(batch_id)).write_text("\n".join(lines))


def _commit(folder: Path, batch_id: int, ended_seconds: float) -> None:
    committed = folder / "commits" / str(batch_id)
    committed.write_text("v1\n{}")
    os.utime(committed, (ended_seconds, ended_seconds))


@pytest.fixture
def query(tmp_path: Path) -> Path:
    for name in ("offsets", "commits"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_a_batch_is_read_when_it_is_complete(query: Path) -> None:
    """A planned batch has a file in `offsets`. Only the file in `commits` shows that it is complete."""
    log = BatchLog(query)
    _plan(query, 0, 10_000, {"0": 40, "1": 60})
    assert log.read() == ()
    _commit(query, 0, 20.0)
    assert log.read() == (THREE[0],)


def test_batches_whose_files_spark_has_deleted_are_still_known(query: Path) -> None:
    """Spark keeps the last 100 (`spark.sql.streaming.minBatchesToRetain`)."""
    log = BatchLog(query)
    for batch_id in range(2):
        _plan(query, batch_id, 10_000, {"0": batch_id})
        _commit(query, batch_id, 20.0)
        log.read()
        for folder in ("offsets", "commits"):
            (query / folder / str(batch_id)).unlink()
    assert [batch.batch_id for batch in log.read()] == [0, 1]


def test_before_the_first_batch_there_is_nothing(tmp_path: Path) -> None:
    assert BatchLog(tmp_path / "query").read() == ()


@pytest.mark.parametrize(
    ("position", "seconds", "why"),
    [
        (0, 10.0, "no record is read when the first batch begins"),
        (50, 15.0, "half of a batch takes half of its time"),
        (100, 20.0, "the last record of a batch is read at its end"),
        (200, 23.0, "a batch without records reads nothing, but its time counts"),
        (300, 24.0, "all records"),
    ],
)
def test_a_position_has_its_time(position: int, seconds: float, why: str) -> None:
    assert seconds_at(THREE, position) == seconds, why


def test_a_position_that_was_not_reached_has_no_time() -> None:
    with pytest.raises(ValueError, match="301 was not reached, only 300"):
        seconds_at(THREE, 301)


def test_rates_follow_from_times() -> None:
    """300 records are read from second 10 to 24. Their second half is read from second 22.5 to 24."""
    assert records_per_second(THREE, 300, since_seconds=9.0) == 300 / 15
    assert second_half_per_second(THREE, 300) == 150 / 1.5


def test_a_batch_runs_from_its_plan_to_its_end(query: Path) -> None:
    log = BatchLog(query)
    assert not log.is_running()
    _plan(query, 0, 10_000, {"0": 100})
    assert log.is_running()
    _commit(query, 0, 20.0)
    assert not log.is_running()
