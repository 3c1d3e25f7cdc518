"""The two Python steps of the plan.

Each step only decodes Spark's rows, calls functions without side effects and encodes their result.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.state import GroupState as SparkState

from assignors import AS_JAVA_LEADER
from streaming.combine.combiner import GROUP_KIND, STATE_ROW_SCHEMA, Combiner, StateRow
from streaming.combine.own_partitions import OwnPartitions
from streaming.combine.partition_state import (
    PARTITION_CODEC,
    PartitionEvent,
    PartitionSnapshot,
    advance_partition,
    decode_partition_event,
    encode_partition_event,
    without_gaps,
)
from streaming.custom.catalogue import users_assignors
from streaming.custom.guarded_assignor import LIMIT_SECONDS
from streaming.evaluation.group_update import (
    ANY_PARTITION,
    DEFAULT_LIMITS,
    GROUP_CODEC,
    GroupState,
    GroupUpdate,
    apply_batch,
    encode_update,
)
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.events import LogEvent, decode_event
from streaming.group.snapshot import GroupSnapshot
from streaming.group.topic_names import NO_TOPIC_NAMES, TopicNames
from streaming.spark.freed_memory import LARGE_BYTES, return_freed_memory

PandasChunks = Iterable[pd.DataFrame]

ROWS_PER_BATCH = 256
"""Maximum number of state rows in one Arrow batch. With smaller batches, a task takes more time."""
BATCH_BYTES = 16 << 20
"""When an Arrow batch has reached this size, the next row is in a new batch. One payload can have several megabytes."""


@dataclass(frozen=True)
class CombineFunction:
    """The function for `mapInArrow`. It combines the records of one task into state rows.

    Spark pickles the fields of this object, as described in `StateFunction`.
    """

    own_partitions: OwnPartitions

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Combine the batches of one task."""
        if (yield from self._combine(batches)) >= LARGE_BYTES:
            return_freed_memory()  # the driver and the JVM need this memory after the task

    def _combine(self, batches: Iterable[pa.RecordBatch]) -> Generator[pa.RecordBatch, None, int]:
        """Yield the state rows. Return the size of the records in bytes."""
        combiner, read_bytes = Combiner(self.own_partitions), 0
        for batch in batches:
            combiner.add(batch)
            read_bytes += batch.nbytes
        for several in split_rows(combiner.rows()):
            yield pa.record_batch([list(column) for column in zip(*several, strict=True)], schema=STATE_ROW_SCHEMA)
        return read_bytes


def split_rows(rows: Iterable[StateRow]) -> Iterator[list[StateRow]]:
    """Split the rows into batches of at most `ROWS_PER_BATCH` rows. A batch also ends when it reaches `BATCH_BYTES`."""
    batch: list[StateRow] = []
    batch_bytes = 0
    for row in rows:
        batch.append(row)
        batch_bytes += len(row[2])
        if len(batch) == ROWS_PER_BATCH or batch_bytes >= BATCH_BYTES:
            yield batch
            batch, batch_bytes = [], 0
    if batch:
        yield batch


@dataclass(frozen=True)
class StateFunction:
    """The function for `applyInPandasWithState`: the state of one group or of one `__consumer_offsets` partition.

    The function is an object of an importable class, so Spark pickles only the fields of the object. Spark sends the
    fields to the workers once, when the query starts.

    `users_references` contains users' strategies as pairs (name, module:attribute). Each worker runs them in separate
    guarded processes. `initial_state` contains encoded group states. If a new checkpoint has no state of a group yet,
    the group starts from its state in `initial_state`.
    """

    strategies: tuple[str, ...]
    users_references: tuple[tuple[str, str], ...] = ()
    initial_state: Mapping[str, bytes] = field(default_factory=dict)
    initial_state_version: int = GROUP_CODEC.version
    limits: Limits = DEFAULT_LIMITS
    names: TopicNames = NO_TOPIC_NAMES
    own_partitions: OwnPartitions = ANY_PARTITION

    def __call__(self, key: tuple[Any, ...], chunks: PandasChunks, state: SparkState) -> Iterator[pd.DataFrame]:
        """Apply the input rows of one (cluster, state_kind, state_key) to the state. Yield the rows for the driver."""
        _, state_kind, state_key = key
        payloads = [payload for chunk in chunks for payload in chunk["payload"]]
        if state_kind == GROUP_KIND:
            payloads = [self._advance_group(state_key, payloads, state)]
        else:
            payloads = _advance_partition(int(state_key), payloads, state, self.limits.stuck_after_seconds)
        yield pd.DataFrame({"state_kind": state_kind, "state_key": state_key, "payload": payloads})

    def _advance_group(self, group_id: str, payloads: list[bytes], state: SparkState) -> bytes:
        events = [decode_event(payload) for payload in payloads]
        if not state.exists and not any(isinstance(event, LogEvent) for event in events):
            # Facts for a group whose state was removed must not create the group again.
            return encode_update(GroupUpdate(GroupState(GroupSnapshot(group_id)), forgotten=True))
        users = users_assignors(self.users_references, LIMIT_SECONDS)
        assignors = [*(AS_JAVA_LEADER[strategy] for strategy in self.strategies), *users]
        if state.exists:
            record = GROUP_CODEC.decode(*state.get)
        elif group_id in self.initial_state:
            record = GROUP_CODEC.decode(self.initial_state_version, self.initial_state[group_id])
        else:
            record = GroupState(GroupSnapshot(group_id))
        update = apply_batch(record, events, assignors, self.limits, self.names, own_partitions=self.own_partitions)
        if update.forgotten:
            state.remove()
        else:
            state.update(GROUP_CODEC.encode(update.record))
        return encode_update(update)


def _advance_partition(
    offsets_topic_partition: int, payloads: list[bytes], state: SparkState, stuck_after_seconds: float
) -> list[bytes]:
    """Advance a partition state. Return the encoded events for the driver, including commit gaps that have ended."""
    snapshot = PARTITION_CODEC.decode(*state.get) if state.exists else PartitionSnapshot(offsets_topic_partition)
    reported: list[PartitionEvent] = []
    for payload in payloads:
        event = decode_partition_event(payload)
        snapshot, closed = advance_partition(snapshot, event, int(stuck_after_seconds))
        reported += [without_gaps(event), *([closed] if closed else [])]
    state.update(PARTITION_CODEC.encode(snapshot))
    return [encode_partition_event(event) for event in reported]
