"""Tests of the memory that the driver needs for one batch, and of the log that it keeps short."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Mapping
from types import SimpleNamespace

import pyarrow as pa
import pytest

from streaming.combine.combiner import GROUP_KIND, STATE_ROW_SCHEMA
from streaming.delta.tables import GROUP_GENERATIONS, Table
from streaming.evaluation.group_update import GroupState, GroupUpdate, apply_batch, decode_update, encode_update
from streaming.group.snapshot import GroupSnapshot
from streaming.run.cluster_clock import ClusterClock
from streaming.run.query import batches
from streaming.run.query.batches import SHORTEN_BATCHES, BatchFailedError, BatchSink
from streaming.run.query.prepare import Bootstrap
from streaming.state.committed_offsets import CommittedOffsets
from streaming.state.monitor_state import MonitorState
from tests.streaming.groups import written


class _Tracked(GroupUpdate, frozen=True, weakref=True):
    """A group update whose end of life can be observed."""


def test_the_decoded_updates_of_a_batch_are_freed_before_the_append(monkeypatch: pytest.MonkeyPatch) -> None:
    """An append needs as much memory as the decoded batch. The driver had both at the same time."""
    alive: list[weakref.ref[_Tracked]] = []
    alive_in_append: list[bool] = []

    def decode_tracked(payload: bytes) -> GroupUpdate:
        update = decode_update(payload)
        tracked = _Tracked(**{name: getattr(update, name) for name in update.__struct_fields__})
        alive.append(weakref.ref(tracked))
        return tracked

    def append_batches(rows: Mapping[Table, pa.Table], _: int) -> list[Table]:
        assert rows[GROUP_GENERATIONS].num_rows == 1
        gc.collect()
        alive_in_append.extend(one() is not None for one in alive)
        return []

    sink = BatchSink(
        cluster="c",
        monitor_state=MonitorState(),
        committed_offsets=CommittedOffsets(),
        tables=SimpleNamespace(append_batches=append_batches),  # type: ignore[arg-type]
        files=None,  # type: ignore[arg-type]
        bootstrap=Bootstrap({}),
        clock=ClusterClock("c", lambda: 0, lambda: 0),
        on_end=lambda: None,
    )
    monkeypatch.setattr(sink, "_positions", lambda _: {})
    monkeypatch.setattr(sink, "_progress_file", SimpleNamespace(store=lambda: None))
    monkeypatch.setattr(batches, "decode_update", decode_tracked)
    payload = encode_update(apply_batch(GroupState(GroupSnapshot("g")), [written(0, 1)], []))
    rows = pa.Table.from_pylist(
        [{"state_kind": GROUP_KIND, "state_key": "g", "payload": payload}], schema=STATE_ROW_SCHEMA
    )
    sink(SimpleNamespace(toArrow=lambda: rows), 0)  # type: ignore[arg-type]
    assert alive_in_append == [False]


def test_a_batch_that_cannot_be_written_does_not_advance_the_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each restart read the same batch and failed, but the cluster was ready between two failures."""

    def fail(*_: object) -> list[Table]:
        raise OSError(28, "No space left on device")

    state = MonitorState()
    sink = BatchSink(
        cluster="c",
        monitor_state=state,
        committed_offsets=CommittedOffsets(),
        tables=SimpleNamespace(append_batches=fail),  # type: ignore[arg-type]
        files=None,  # type: ignore[arg-type]
        bootstrap=Bootstrap({}),
        clock=ClusterClock("c", lambda: 0, lambda: 0),
        on_end=lambda: None,
    )
    monkeypatch.setattr(sink, "_positions", lambda _: {0: 1})
    with pytest.raises(BatchFailedError):
        sink(SimpleNamespace(toArrow=STATE_ROW_SCHEMA.empty_table), 0)  # type: ignore[arg-type]
    assert state.view().health.positions == {}


def test_the_log_of_the_file_source_is_shortened_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: bounded. A failure, for example of the storage, does not fail the batch."""
    sink, shortened = object.__new__(BatchSink), []
    sink.on_end, sink.files, sink.cluster = (lambda: None), None, "c"  # type: ignore[assignment]
    monkeypatch.setattr(sink, "_apply", lambda *_: 0)

    def shorten(_: object) -> None:
        shortened.append(batch_id)
        raise OSError(5, "cannot be read", "s3a://bucket/checkpoint")

    monkeypatch.setattr(batches, "shorten_file_source_log", shorten)
    for batch_id in range(3 * SHORTEN_BATCHES):
        sink(None, batch_id)  # type: ignore[arg-type]
    assert shortened == [SHORTEN_BATCHES - 1, 2 * SHORTEN_BATCHES - 1, 3 * SHORTEN_BATCHES - 1]
