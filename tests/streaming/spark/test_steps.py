"""The two Python steps without Spark: Arrow in, Arrow out; pandas in, pandas out, with Spark's own state object."""

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
from streaming.evaluation.rebalances.detectors import Limits
from streaming.events import GroupEvent, GroupForgotten, SkipSettled, encode_event
from streaming.group.snapshot import DEAD, GroupTotals
from streaming.spark.query import STORED_STATE
from streaming.spark.steps import ROWS_PER_BATCH, CombineFunction, StateFunction
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


def test_many_membership_rows_travel_in_few_batches() -> None:
    """A batch a row made batches the cost of catching up."""
    records = [LogRecord(group_key(f"g{at}"), group_value(1), 0, at) for at in range(3 * ROWS_PER_BATCH)]
    batches = list(combine([record_batch(records)]))
    assert [batch.num_rows for batch in batches] == [ROWS_PER_BATCH] * 3 + [1]
    assert all(batch.schema == STATE_ROW_SCHEMA for batch in batches)


def state_of(stored: tuple[int, bytes] | None) -> SparkState:
    """Return Spark's own state object as a worker has it."""
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
    """Return payloads as the chunks Spark hands over."""
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


def test_a_groups_rows_are_gathered_from_all_chunks_and_taken_in_log_order() -> None:
    state = state_of(None)
    update = update_of([written(9, 4), written(5, 1), written(7, 2), written(6, 1), written(8, 3)], state)
    assert [snapshot.generation_id for snapshot in update.history] == [1, 1, 2, 3, 4]
    assert GROUP_CODEC.decode(*state.get) == update.record


def test_a_group_goes_on_from_its_state() -> None:
    state = state_of(GROUP_CODEC.encode(GroupState(advanced([written(5, 1)]))))
    update = update_of([written(6, 3)], state)
    assert update.record.snapshot.totals == GroupTotals(rebalances=2)


SEED = GROUP_CODEC.encode(GroupState(advanced([written(5, 1), written(6, 2)])))[1]


def test_a_group_without_state_starts_from_its_seed_and_only_then() -> None:
    """A rebuilt checkpoint keeps totals; what state there is goes before."""
    assert update_of([written(7, 3)], state_of(None), {"g": SEED}).record.snapshot.totals.rebalances == 2
    own = state_of(GROUP_CODEC.encode(GroupState(advanced([written(6, 2)]))))
    assert update_of([written(7, 3)], own, {"g": SEED}).record.snapshot.totals.rebalances == 1


def test_a_forgotten_group_leaves_no_state() -> None:
    state = state_of(GROUP_CODEC.encode(GroupState(advanced([written(5, 1), tombstoned(6)]))))
    assert update_of([GroupForgotten()], state).forgotten
    assert not state.exists


@pytest.mark.parametrize("fact", [GroupForgotten(), SkipSettled(6, log_was_whole=True), sampled(5, orders=3)])
def test_a_fact_that_comes_too_late_brings_no_group_back(fact: GroupEvent) -> None:
    """Sent twice, the second after the group was forgotten: the seed's members must not rise from the dead."""
    state = state_of(None)
    update = update_of([fact], state, {"g": SEED})
    assert update.forgotten
    assert update.record.snapshot.state == DEAD
    assert not state.exists


@given(st.data())
def test_a_lane_goes_through_its_state_as_through_one_batch(data: st.DataObject) -> None:
    records = data.draw(logs(partitions=1).filter(bool))
    state, function = state_of(None), StateFunction(("range",))
    for piece in data.draw(pieces(records)):
        rows = [row for batch in combine([record_batch(piece)]) for row in batch.to_pylist()]
        payloads = [row["payload"] for row in rows if row["state_kind"] == PARTITION_KIND]
        frames: list[Any] = list(function(("c", PARTITION_KIND, "0"), chunks_of(payloads), state)) if payloads else []
        reported = [decode_partition_event(payload) for frame in frames for payload in frame["payload"]]
        sent = [without_gaps(decode_partition_event(payload)) for payload in payloads]
        assert [event for event in reported if not isinstance(event, GapsClosed)] == sent, "the driver gets them too"
    state_kind = PARTITION_CODEC.decode(*state.get)
    assert merged_partitions([[record_batch(records)]])[0][0].records_read == state_kind.records_read
    assert isinstance(state_kind, PartitionSnapshot)


def test_a_lane_tells_a_gap_that_a_round_passed_over_as_long_as_the_settings_say() -> None:
    """`evaluation.stuck_after_seconds` reaches the lanes; the driver hears of the gap, and of no commit run."""
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
        reported = [decode_partition_event(payload) for payload in frame["payload"]]
        assert [gap.closed_by for event in reported if isinstance(event, GapsClosed) for gap in event.gaps] == closed
        assert [(event.runs, event.boundaries) for event in reported if isinstance(event, PartitionBatch)] == [
            (b"", ())
        ]


def test_a_state_function_is_small_to_ship() -> None:
    assert len(pickle.dumps(StateFunction(("range",)))) < 1_000
    assert pa.schema(STATE_ROW_SCHEMA).names == ["state_kind", "state_key", "payload"]
