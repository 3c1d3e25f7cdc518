"""Combine records one at a time, as a reference for the tests. The model uses dictionaries and the exact decoder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa

from streaming.combine.combiner import GROUP_KIND, Combiner
from streaming.combine.commits import COMMIT_SCHEMA, canonical_key
from streaming.combine.partition_state import PartitionSnapshot, advance_partition, decode_partition_event, table_of
from streaming.events import GroupEvent, Position, decode_event
from streaming.events.from_records import decode_failed_event, log_event
from streaming.protocol import RecordType, UndecodableRecord, decode
from streaming.protocol.classic import Refusal
from tests.streaming.log_records import LogRecord

Commit = tuple[int, int, int]
"""Log offset, timestamp, committed offset."""
WINDOW_COMMITS = 10
SLOT_MS = 1_000
COMMITS = (RecordType.OFFSET_COMMIT, RecordType.OFFSET_COMMIT_LEGACY)


@dataclass
class PartitionModel:
    """State of one `__consumer_offsets` partition, without group membership."""

    first_offset: int
    last_offset: int
    last_missing_offset: int = -1
    records_read: Counter[str] = field(default_factory=Counter)
    decode_failures: list[tuple[LogRecord, str, str | None]] = field(default_factory=list)
    commits: dict[bytes, list[Commit]] = field(default_factory=dict)


@dataclass
class Combined:
    """Result of combining a sequence of records."""

    partition_states: dict[int, PartitionModel] = field(default_factory=dict)
    events: list[tuple[str, GroupEvent]] = field(default_factory=list)


def combine_one_by_one(records: Iterable[LogRecord]) -> Combined:
    """Combine the records one by one."""
    combined = Combined()
    for record in records:
        partition_state = combined.partition_states.setdefault(
            record.offsets_topic_partition, PartitionModel(record.offsets_topic_offset, record.offsets_topic_offset - 1)
        )
        if record.offsets_topic_offset > partition_state.last_offset + 1:
            partition_state.last_missing_offset = record.offsets_topic_offset - 1
        partition_state.last_offset = record.offsets_topic_offset
        try:
            _read(combined, partition_state, record)
        except UndecodableRecord as refusal:
            partition_state.decode_failures.append((record, refusal.reason, refusal.field))
            partition_state.last_missing_offset = record.offsets_topic_offset
            position = Position(record.offsets_topic_partition, record.offsets_topic_offset, record.timestamp_ms)
            lost = decode_failed_event(record.key or b"", position)
            combined.events += [lost] if lost else []
    return combined


def _read(combined: Combined, partition_state: PartitionModel, record: LogRecord) -> None:
    decoded = decode(record.key, record.value)
    kind = RecordType(decoded.key_type)
    if kind in COMMITS:
        committed = -1 if decoded.value is None else max(-1, decoded.value["offset"])
        commit = (record.offsets_topic_offset, record.timestamp_ms, committed)
        of_key = partition_state.commits.get(key := canonical_key(record.key or b""), [])
        partition_state.commits[key] = [*(one for one in of_key if not _takes_place_of(commit, one)), commit][
            -WINDOW_COMMITS:
        ]
    position = Position(record.offsets_topic_partition, record.offsets_topic_offset, record.timestamp_ms)
    refusals: list[Refusal] = []
    if (grouped := log_event(decoded, position, refusals)) is not None:
        combined.events.append(grouped)
    partition_state.decode_failures += [(record, refusal.reason, refusal.field) for _, refusal in refusals[:1]]
    partition_state.records_read[kind.name.lower() + ("_tombstone" if decoded.value is None else "")] += 1


def _takes_place_of(newer: Commit, older: Commit) -> bool:
    """Return True if `newer` replaces `older` because both are in the same second. A negative time counts as 0."""
    return max(0, newer[1]) // SLOT_MS == max(0, older[1]) // SLOT_MS and (newer[2] == -1) == (older[2] == -1)


def combine_in_bulk(batches: Sequence[pa.RecordBatch]) -> Combined:
    """Combine the batches with the Combiner and return the result in the types of this model."""
    combiner = Combiner()
    for batch in batches:
        combiner.add(batch)
    combined = Combined()
    for kind, state_key, payload in combiner.rows():
        if kind == GROUP_KIND:
            combined.events.append((state_key, decode_event(payload)))
            continue
        partition_batch = decode_partition_event(payload)
        assert partition_batch.offsets_topic_partition == int(state_key)
        combined.partition_states[int(state_key)] = PartitionModel(
            partition_batch.first_offset,
            partition_batch.last_offset,
            partition_batch.last_missing_offset,
            Counter(partition_batch.records_read),
            [
                (
                    LogRecord(
                        one.key, one.value, one.offsets_topic_partition, one.offsets_topic_offset, one.timestamp_ms
                    ),
                    *why,
                )
                for one in partition_batch.decode_failures
                for why in [(one.reason, one.field)]
            ],
            batch_commits(partition_batch.commits),
        )
    return combined


def batch_commits(encoded: bytes) -> dict[bytes, list[Commit]]:
    """Return the commits by key, in their stored order."""
    by_key: dict[bytes, list[Commit]] = {}
    for row in table_of(encoded, COMMIT_SCHEMA).to_pylist():
        commit = (row["offsets_topic_offset"], row["timestamp_ms"], row["committed_offset"])
        by_key.setdefault(row["key"], []).append(commit)
    return by_key


def known_commits(encoded: bytes) -> dict[bytes, Commit]:
    """Return the commits by key. A table with a duplicate key fails."""
    by_key = batch_commits(encoded)
    assert all(len(commits) == 1 for commits in by_key.values())
    return {key: commit for key, (commit,) in by_key.items()}


def merged_partitions(
    tasks: Sequence[Sequence[pa.RecordBatch]],
) -> dict[int, tuple[PartitionSnapshot, dict[bytes, Commit]]]:
    """Return the partition states after several micro-batches. Each micro-batch is the list of batches of one task."""
    partition_states: dict[int, PartitionSnapshot] = {}
    for task in tasks:
        combiner = Combiner()
        for batch in task:
            combiner.add(batch)
        for kind, state_key, payload in combiner.rows():
            if kind != GROUP_KIND:
                known = partition_states.get(int(state_key), PartitionSnapshot(int(state_key)))
                partition_states[int(state_key)] = advance_partition(known, decode_partition_event(payload))[0]
    return {
        offsets_topic_partition: (
            msgspec.structs.replace(partition_state, commits=b""),
            known_commits(partition_state.commits),
        )
        for offsets_topic_partition, partition_state in partition_states.items()
    }
