"""The two Python steps of the plan. Each only unpacks Spark's rows, calls the pure core and packs the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.state import GroupState

from assignors import AS_JAVA_LEADER
from streaming.combine.combiner import GROUP_LANE, LANE_SCHEMA, Combiner
from streaming.combine.lanes import (
    LANE_CODEC,
    PartitionEvent,
    PartitionSnapshot,
    advance_lane,
    decode_partition_event,
    encode_partition_event,
    without_gaps,
)
from streaming.combine.own_partitions import OwnPartitions
from streaming.custom.catalogue import users_assignors
from streaming.custom.guard import LIMIT_SECONDS
from streaming.evaluation.rebalances.detectors import Limits
from streaming.evaluation.turn import (
    ANY_PARTITION,
    DEFAULT_LIMITS,
    GROUP_CODEC,
    GroupRecord,
    Turn,
    encode_turn,
    take_turn,
)
from streaming.events import LogEvent, decode_event
from streaming.group.snapshot import GroupSnapshot
from streaming.group.topic_names import NOBODY_ASKED, TopicNames

PandasChunks = Iterable[pd.DataFrame]

ROWS_PER_BATCH = 256
"""Lane rows in one Arrow batch: few enough for payloads of megabytes, enough that batches are not the cost."""


@dataclass(frozen=True)
class CombineFunction:
    """`mapInArrow`: one task's records to lane rows. An object for the reason that `StateFunction` is one."""

    own_partitions: OwnPartitions

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the batches of one task."""
        combiner = Combiner(self.own_partitions)
        for batch in batches:
            combiner.add(batch)
        rows = combiner.rows()
        while several := list(islice(rows, ROWS_PER_BATCH)):
            yield pa.record_batch([list(column) for column in zip(*several, strict=True)], schema=LANE_SCHEMA)


@dataclass(frozen=True)
class StateFunction:
    """`applyInPandasWithState`: advance one group or one Kafka partition.

    An object of an importable class, not a closure: Spark then ships its fields and nothing it happens to refer to.
    `users_references` are users' own strategies as (name, module:attribute); each worker runs them guarded, in
    processes of their own. `seeds` are stored group records (of `seed_version`) that a new checkpoint starts from;
    they are shipped once, when the query starts, and serve a group until it has a state of its own. So are the `names`
    of all topics.
    """

    strategies: tuple[str, ...]
    users_references: tuple[tuple[str, str], ...] = ()
    users_limit_seconds: float = LIMIT_SECONDS
    seeds: Mapping[str, bytes] = field(default_factory=dict)
    seed_version: int = GROUP_CODEC.version
    limits: Limits = DEFAULT_LIMITS
    names: TopicNames = NOBODY_ASKED
    own_partitions: OwnPartitions = ANY_PARTITION

    def __call__(self, key: tuple[Any, ...], chunks: PandasChunks, state: GroupState) -> Iterator[pd.DataFrame]:
        """Take the rows of one (cluster, lane, lane_key) and give back the rows for the driver."""
        _, lane, lane_key = key
        payloads = [payload for chunk in chunks for payload in chunk["payload"]]
        if lane == GROUP_LANE:
            payloads = [self._advance_group(lane_key, payloads, state)]
        else:
            payloads = _advance_partition(int(lane_key), payloads, state, self.limits.round_seconds)
        yield pd.DataFrame({"lane": lane, "lane_key": lane_key, "payload": payloads})

    def _advance_group(self, group_id: str, payloads: list[bytes], state: GroupState) -> bytes:
        events = [decode_event(payload) for payload in payloads]
        if not state.exists and not any(isinstance(event, LogEvent) for event in events):
            # Facts for a group that was forgotten meanwhile must not bring it back, least of all from its seed.
            return encode_turn(Turn(GroupRecord(GroupSnapshot(group_id)), forgotten=True))
        users = users_assignors(self.users_references, self.users_limit_seconds)
        assignors = [*(AS_JAVA_LEADER[strategy] for strategy in self.strategies), *users]
        record = self._record(group_id, state)
        turn = take_turn(record, events, assignors, self.limits, self.names, own_partitions=self.own_partitions)
        if turn.forgotten:
            state.remove()
        else:
            state.update(GROUP_CODEC.encode(turn.record))
        return encode_turn(turn)

    def _record(self, group_id: str, state: GroupState) -> GroupRecord:
        if state.exists:
            return GROUP_CODEC.decode(*state.get)
        if group_id in self.seeds:
            return GROUP_CODEC.decode(self.seed_version, self.seeds[group_id])
        return GroupRecord(GroupSnapshot(group_id))


def _advance_partition(
    kafka_partition: int, payloads: list[bytes], state: GroupState, round_seconds: float
) -> list[bytes]:
    """Advance the lane; what the driver is to hear are the events themselves and the commit gaps that closed."""
    snapshot = LANE_CODEC.decode(*state.get) if state.exists else PartitionSnapshot(kafka_partition)
    told: list[PartitionEvent] = []
    for payload in payloads:
        event = decode_partition_event(payload)
        snapshot, closed = advance_lane(snapshot, event, int(round_seconds))
        told += [without_gaps(event), *([closed] if closed else [])]
    state.update(LANE_CODEC.encode(snapshot))
    return [encode_partition_event(event) for event in told]
