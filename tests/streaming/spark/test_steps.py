"""Tests of the two Python steps without a Spark session, with Spark's own state object.

The first step reads and returns Arrow, the second pandas.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.state import GroupState as SparkState
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.types import Row

from streaming.combine.combiner import GROUP_KIND, PARTITION_KIND, STATE_ROW_SCHEMA, Combiner
from streaming.combine.own_partitions import OwnPartitions
from streaming.combine.partition_state import (
    PARTITION_CODEC,
    GapsClosed,
    PartitionBatch,
    PartitionSnapshot,
    decode_partition_event,
    without_gaps,
)
from streaming.evaluation.group_update import GROUP_CODEC, GroupState, GroupUpdate, decode_update
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.events import GroupEvent, GroupForgotten, SkipSettled, encode_event
from streaming.group.snapshot import DEAD, GroupTotals
from streaming.spark.query import STORED_STATE
from streaming.spark.steps import BATCH_BYTES, ROWS_PER_BATCH, CombineFunction, StateFunction, split_rows
from tests.streaming.combine.plain_model import merged_partitions
from tests.streaming.combine.strategies import logs, pieces
from tests.streaming.groups import advanced, sampled, tombstoned, written
from tests.streaming.log_records import (
    LogRecord,
    commit_key,
    commit_value,
    group_key,
    group_value,
    member_fields,
    record_batch,
)

combine = CombineFunction(OwnPartitions())


@given(st.data())
def test_combine_gives_the_combiners_rows(data: st.DataObject) -> None:
    batches = [record_batch(piece) for piece in data.draw(pieces(data.draw(logs())))]
    combiner = Combiner()
    for batch in batches:
        combiner.add(batch)
    rows = [row for batch in combine(batches) for row in batch.to_pylist()]
    assert [(row["state_kind"], row["state_key"], row["payload"]) for row in rows] == list(combiner.rows())


def test_a_task_without_records_gives_no_rows() -> None:
    assert list(combine([])) == []
    assert list(combine([record_batch([])])) == []


def test_many_membership_rows_are_sent_in_few_arrow_batches() -> None:
    """With one batch per row, most of the time of catching up went into batches."""
    records = [LogRecord(group_key(f"g{at}"), group_value(1), 0, at) for at in range(3 * ROWS_PER_BATCH)]
    batches = list(combine([record_batch(records)]))
    assert [batch.num_rows for batch in batches] == [ROWS_PER_BATCH] * 3 + [1]
    assert all(batch.schema == STATE_ROW_SCHEMA for batch in batches)


def test_state_rows_with_large_payloads_are_sent_in_small_arrow_batches() -> None:
    """256 rows of 1 MB were one Arrow batch, which Spark's JVM reads as a whole, outside its heap."""
    large, small = bytes(BATCH_BYTES // 2), b"small"
    rows = [(GROUP_KIND, str(at), payload) for at, payload in enumerate([large] * 5 + [small] * 2)]
    batches = list(split_rows(rows))
    assert [len(batch) for batch in batches] == [2, 2, 3]
    assert [row for batch in batches for row in batch] == rows


def state_of(stored: tuple[int, bytes] | None) -> SparkState:
    """Return Spark's state object as a worker receives it."""
    return SparkState(
        optionalValue=Row() if stored is None else Row(*stored),  # type: ignore[call-overload]
        batchProcessingTimeMs=0,
        eventTimeWatermarkMs=-1,
        timeoutConf=GroupStateTimeout.NoTimeout,
        hasTimedOut=False,
        watermarkPresent=False,
        defined=stored is not None,
        updated=False,
        removed=False,
        timeoutTimestamp=-1,
        keyAsUnsafe=b"",
        valueSchema=STORED_STATE,
    )


def chunks_of(payloads: Sequence[bytes], size: int = 2) -> list[pd.DataFrame]:
    """Return the payloads in chunks, as Spark passes them."""
    return [pd.DataFrame({"payload": payloads[start : start + size]}) for start in range(0, len(payloads), size)]


def update_of(
    events: Sequence[GroupEvent], state: SparkState, initial_state: dict[str, bytes] | None = None
) -> GroupUpdate:
    """Run the state function for one group."""
    function = StateFunction(("range", "roundrobin"), initial_state=initial_state or {})
    (frame,) = function(("c", GROUP_KIND, "g"), chunks_of([encode_event(event) for event in events]), state)
    (row,) = frame.to_dict("records")
    assert (row["state_kind"], row["state_key"]) == (GROUP_KIND, "g")
    return decode_update(row["payload"])


def test_a_groups_rows_of_all_chunks_are_applied_in_log_order() -> None:
    state = state_of(None)
    update = update_of([written(9, 4), written(5, 1), written(7, 2), written(6, 1), written(8, 3)], state)
    assert [snapshot.generation_id for snapshot in update.history] == [1, 1, 2, 3, 4]
    assert GROUP_CODEC.decode(*state.get) == update.record


def test_a_group_continues_from_its_state() -> None:
    state = state_of(GROUP_CODEC.encode(GroupState(advanced([written(5, 1)]))))
    update = update_of([written(6, 3)], state)
    assert update.record.snapshot.totals == GroupTotals(rebalances=2)


INITIAL_STATE = GROUP_CODEC.encode(GroupState(advanced([written(5, 1), written(6, 2)])))[1]


def test_only_a_group_without_state_starts_from_its_initial_state() -> None:
    """A rebuilt checkpoint keeps totals. An existing state takes precedence."""
    assert update_of([written(7, 3)], state_of(None), {"g": INITIAL_STATE}).record.snapshot.totals.rebalances == 2
    existing = state_of(GROUP_CODEC.encode(GroupState(advanced([written(6, 2)]))))
    assert update_of([written(7, 3)], existing, {"g": INITIAL_STATE}).record.snapshot.totals.rebalances == 1


def test_a_forgotten_group_leaves_no_state() -> None:
    state = state_of(GROUP_CODEC.encode(GroupState(advanced([written(5, 1), tombstoned(6)]))))
    assert update_of([GroupForgotten()], state).forgotten
    assert not state.exists


@pytest.mark.parametrize("fact", [GroupForgotten(), SkipSettled(6, log_was_whole=True), sampled(5, orders=3)])
def test_a_late_fact_does_not_create_a_forgotten_group_again(fact: GroupEvent) -> None:
    """The fact was sent twice, the second time after the group was forgotten.

    The members of the initial state must not appear again.
    """
    state = state_of(None)
    update = update_of([fact], state, {"g": INITIAL_STATE})
    assert update.forgotten
    assert update.record.snapshot.state == DEAD
    assert not state.exists


@given(st.data())
def test_a_partition_state_after_several_batches_is_as_after_one_batch(data: st.DataObject) -> None:
    records = data.draw(logs(partitions=1).filter(bool))
    state, function = state_of(None), StateFunction(("range",))
    for piece in data.draw(pieces(records)):
        rows = [row for batch in combine([record_batch(piece)]) for row in batch.to_pylist()]
        payloads = [row["payload"] for row in rows if row["state_kind"] == PARTITION_KIND]
        frames: list[Any] = list(function(("c", PARTITION_KIND, "0"), chunks_of(payloads), state)) if payloads else []
        events = [decode_partition_event(payload) for frame in frames for payload in frame["payload"]]
        sent = [without_gaps(decode_partition_event(payload)) for payload in payloads]
        assert [event for event in events if not isinstance(event, GapsClosed)] == sent, (
            "the driver also receives the events"
        )
    partition_snapshot = PARTITION_CODEC.decode(*state.get)
    assert merged_partitions([[record_batch(records)]])[0][0].records_read == partition_snapshot.records_read
    assert isinstance(partition_snapshot, PartitionSnapshot)


def test_a_commit_gap_is_reported_after_the_time_in_the_settings() -> None:
    """`evaluation.stuck_after_seconds` reaches the partition state. The driver receives the gap, but no commit runs."""
    generation = group_value(1, [member_fields("m")])
    records = [
        LogRecord(commit_key("g"), commit_value(1), 0, 0, 1_000),
        LogRecord(group_key("g"), generation, 0, 1, 2_000),
        LogRecord(commit_key("other"), commit_value(1), 0, 2, 13_000),
    ]
    (batch,) = combine([record_batch(records)])
    payloads = [row["payload"] for row in batch.to_pylist() if row["state_kind"] == PARTITION_KIND]
    for stuck_after_seconds, closed in ((10, ["round_passed"]), (11, [])):
        function = StateFunction(("range",), limits=Limits(stuck_after_seconds=stuck_after_seconds))
        (frame,) = function(("c", PARTITION_KIND, "0"), chunks_of(payloads), state_of(None))
        events = [decode_partition_event(payload) for payload in frame["payload"]]
        assert [gap.closed_by for event in events if isinstance(event, GapsClosed) for gap in event.gaps] == closed
        assert [(event.runs, event.boundaries) for event in events if isinstance(event, PartitionBatch)] == [(b"", ())]


def test_a_pickled_state_function_is_small() -> None:
    assert len(pickle.dumps(StateFunction(("range",)))) < 1_000
    assert pa.schema(STATE_ROW_SCHEMA).names == ["state_kind", "state_key", "payload"]
