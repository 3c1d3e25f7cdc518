"""What combining means, said plainly: one record after another, dictionaries, the exact decoder. Slow and obvious."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa

from streaming.combine.combiner import GROUP_LANE, Combiner
from streaming.combine.commits import canonical_key
from streaming.combine.lanes import PartitionSnapshot, commits_table, decode_partition_event, merge_lane
from streaming.events import GroupEvent, Position, decode_event, log_event, unreadable_event
from streaming.protocol import RecordType, UndecodableRecord, decode
from streaming.protocol.classic import Refusal
from tests.streaming.log_records import LogRecord

Commit = tuple[int, int, int]
"""Log offset, timestamp, committed offset."""
WINDOW_COMMITS = 10
SLOT_MS = 1_000
COMMITS = (RecordType.OFFSET_COMMIT, RecordType.OFFSET_COMMIT_LEGACY)


@dataclass
class Lane:
    """All that one Kafka partition says beside membership."""

    first_offset: int
    last_offset: int
    last_missing_offset: int = -1
    records_read: Counter[str] = field(default_factory=Counter)
    quarantined: list[tuple[LogRecord, str, str | None]] = field(default_factory=list)
    commits: dict[bytes, list[Commit]] = field(default_factory=dict)


@dataclass
class Combined:
    """What a sequence of records comes to."""

    lanes: dict[int, Lane] = field(default_factory=dict)
    events: list[tuple[str, GroupEvent]] = field(default_factory=list)


def combined_plainly(records: Iterable[LogRecord]) -> Combined:
    """Read records one by one."""
    combined = Combined()
    for record in records:
        lane = combined.lanes.setdefault(record.kafka_partition, Lane(record.kafka_offset, record.kafka_offset - 1))
        if record.kafka_offset > lane.last_offset + 1:
            lane.last_missing_offset = record.kafka_offset - 1
        lane.last_offset = record.kafka_offset
        try:
            _read(combined, lane, record)
        except UndecodableRecord as refusal:
            lane.quarantined.append((record, refusal.reason, refusal.field))
            lane.last_missing_offset = record.kafka_offset
            position = Position(record.kafka_partition, record.kafka_offset, record.timestamp_ms)
            lost = unreadable_event(record.key or b"", position)
            combined.events += [lost] if lost else []
    return combined


def _read(combined: Combined, lane: Lane, record: LogRecord) -> None:
    decoded = decode(record.key, record.value)
    kind = RecordType(decoded.key_type)
    if kind in COMMITS:
        committed = -1 if decoded.value is None else max(-1, decoded.value["offset"])
        commit = (record.kafka_offset, record.timestamp_ms, committed)
        of_key = lane.commits.get(key := canonical_key(record.key or b""), [])
        lane.commits[key] = [*(one for one in of_key if not _takes_place_of(commit, one)), commit][-WINDOW_COMMITS:]
    position = Position(record.kafka_partition, record.kafka_offset, record.timestamp_ms)
    refusals: list[Refusal] = []
    if (grouped := log_event(decoded, position, refusals)) is not None:
        combined.events.append(grouped)
    lane.quarantined += [(record, refusal.reason, refusal.field) for _, refusal in refusals[:1]]
    lane.records_read[kind.name.lower() + ("_tombstone" if decoded.value is None else "")] += 1


def _takes_place_of(newer: Commit, older: Commit) -> bool:
    """Of a second's commits the last is kept, and of its tombstones."""
    return newer[1] // SLOT_MS == older[1] // SLOT_MS and (newer[2] == -1) == (older[2] == -1)


def combined_in_bulk(batches: Sequence[pa.RecordBatch]) -> Combined:
    """Read records by the Combiner, and its rows in the words of the plain model."""
    combiner = Combiner()
    for batch in batches:
        combiner.add(batch)
    combined = Combined()
    for lane, lane_key, payload in combiner.rows():
        if lane == GROUP_LANE:
            combined.events.append((lane_key, decode_event(payload)))
            continue
        partition_batch = decode_partition_event(payload)
        assert partition_batch.kafka_partition == int(lane_key)
        combined.lanes[int(lane_key)] = Lane(
            partition_batch.first_offset,
            partition_batch.last_offset,
            partition_batch.last_missing_offset,
            Counter(partition_batch.records_read),
            [
                (LogRecord(one.key, one.value, one.kafka_partition, one.kafka_offset, one.timestamp_ms), *why)
                for one in partition_batch.quarantined
                for why in [(one.reason, one.field)]
            ],
            batch_commits(partition_batch.commits),
        )
    return combined


def batch_commits(encoded: bytes) -> dict[bytes, list[Commit]]:
    """Return commits by key, in the order they stand in."""
    by_key: dict[bytes, list[Commit]] = {}
    for row in commits_table(encoded).to_pylist():
        commit = (row["kafka_offset"], row["timestamp_ms"], row["committed_offset"])
        by_key.setdefault(row["key"], []).append(commit)
    return by_key


def known_commits(encoded: bytes) -> dict[bytes, Commit]:
    """Return commits by key, refusing a table that has a key twice."""
    by_key = batch_commits(encoded)
    assert all(len(commits) == 1 for commits in by_key.values())
    return {key: commit for key, (commit,) in by_key.items()}


def merged_lanes(tasks: Sequence[Sequence[pa.RecordBatch]]) -> dict[int, tuple[PartitionSnapshot, dict[bytes, Commit]]]:
    """Return the lanes after several micro-batches, each the batches of its one task."""
    lanes: dict[int, PartitionSnapshot] = {}
    for task in tasks:
        combiner = Combiner()
        for batch in task:
            combiner.add(batch)
        for lane, lane_key, payload in combiner.rows():
            if lane != GROUP_LANE:
                known = lanes.get(int(lane_key), PartitionSnapshot(int(lane_key)))
                lanes[int(lane_key)] = merge_lane(known, decode_partition_event(payload))
    return {
        kafka_partition: (msgspec.structs.replace(lane, commits=b""), known_commits(lane.commits))
        for kafka_partition, lane in lanes.items()
    }
