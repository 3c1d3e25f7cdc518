"""The two Python steps of the plan. Each only unpacks Spark's rows, calls the pure core and packs the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.state import GroupState

from assignors import assignor_named
from streaming.combine.combiner import GROUP_LANE, LANE_SCHEMA, Combiner
from streaming.combine.lanes import LANE_CODEC, PartitionSnapshot, decode_partition_batch, merge_lane
from streaming.events import decode_event
from streaming.group.snapshot import GroupSnapshot
from streaming.judgement.turn import GROUP_CODEC, GroupRecord, encode_turn, take_turn

PandasChunks = Iterable[pd.DataFrame]
StateFunction = Callable[[tuple[Any, ...], PandasChunks, GroupState], Iterator[pd.DataFrame]]


def combine(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """`mapInArrow`: one task's records to lane rows."""
    combiner = Combiner()
    for batch in batches:
        combiner.add(batch)
    rows = list(combiner.rows())
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows), LANE_SCHEMA.types)] if rows else []
    if columns:
        yield pa.record_batch(columns, schema=LANE_SCHEMA)


def state_function(strategies: tuple[str, ...], seeds: Mapping[str, bytes], seed_version: int) -> StateFunction:
    """`applyInPandasWithState`: advance one group or one Kafka partition.

    `seeds` are stored group records (of `seed_version`) that a new checkpoint starts from; they are shipped once, when
    the query starts, and serve a group until it has a state of its own.
    """

    def advance_key(
        key: tuple[Any, ...], chunks: PandasChunks, state: GroupState
    ) -> Iterator[pd.DataFrame]:
        _, lane, lane_key = key
        payloads = [payload for chunk in chunks for payload in chunk["payload"]]
        if lane == GROUP_LANE:
            yield _rows(lane, lane_key, _advance_group(lane_key, payloads, state))
        else:
            _advance_partition(int(lane_key), payloads, state)
            yield _rows(lane, lane_key, *payloads)

    def _advance_group(group_id: str, payloads: list[bytes], state: GroupState) -> bytes:
        if state.exists:
            record = GROUP_CODEC.decode(*state.get)
        elif group_id in seeds:
            record = GROUP_CODEC.decode(seed_version, seeds[group_id])
        else:
            record = GroupRecord(GroupSnapshot(group_id))
        turn = take_turn(record, map(decode_event, payloads), [assignor_named(name) for name in strategies])
        state.update(GROUP_CODEC.encode(turn.record))
        return encode_turn(turn)

    return advance_key


def _advance_partition(kafka_partition: int, payloads: list[bytes], state: GroupState) -> None:
    snapshot = LANE_CODEC.decode(*state.get) if state.exists else PartitionSnapshot(kafka_partition)
    for payload in payloads:
        snapshot = merge_lane(snapshot, decode_partition_batch(payload))
    state.update(LANE_CODEC.encode(snapshot))


def _rows(lane: str, lane_key: str, *payloads: bytes) -> pd.DataFrame:
    return pd.DataFrame({"lane": lane, "lane_key": lane_key, "payload": list(payloads)})
