"""Compute commit gaps one record at a time, as a reference for the tests. The model is slow and keeps every commit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from streaming.combine.commits import canonical_key
from streaming.combine.gaps import CommitGap
from streaming.events import Position
from streaming.events.from_records import log_event
from streaming.protocol import RecordType, UndecodableRecord, decode
from tests.streaming.log_records import LogRecord

TARGET_EPOCHS = (
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
)
GROUP_EPOCHS = (RecordType.CONSUMER_GROUP_METADATA, RecordType.STREAMS_GROUP_METADATA)
COMMITS = (RecordType.OFFSET_COMMIT, RecordType.OFFSET_COMMIT_LEGACY)


@dataclass
class Commit:
    """A commit with its position in the log."""

    offset: int
    ms: int
    committed: int
    missing_below: int = -1
    is_by_member: bool = True


@dataclass
class Gap:
    """A gap: the commits before it, the first commits after it, and the partitions whose commit was deleted first."""

    boundary: LogRecord
    group_id: str
    generation_id: int
    until_seconds: int
    missing_below: int
    before: dict[bytes, Commit]
    usual_interval_ms: int | None
    after: dict[bytes, Commit] = field(default_factory=dict)
    deleted: set[bytes] = field(default_factory=set)
    has_members: bool = True
    """False after a record that shows no members, or a group epoch whose target is not written yet."""


@dataclass
class Ended:
    """A group after its tombstone, while it can still be an upgrade or downgrade."""

    tombstone_ms: int
    clock_seconds: int
    last_offset: int
    rows: list[CommitGap]


@dataclass
class PartitionModel:
    """State of one `__consumer_offsets` partition that is read record by record."""

    stuck_after_seconds: int
    clock_seconds: int = -1
    next_offset: int = 0
    missing: int = -1
    live: dict[bytes, Commit] = field(default_factory=dict)
    in_generation: dict[bytes, list[int]] = field(default_factory=dict)
    last_boundary: dict[bytes, tuple[int | None, int]] = field(default_factory=dict)
    open: dict[bytes, Gap] = field(default_factory=dict)
    ended: dict[bytes, Ended] = field(default_factory=dict)
    closed: list[CommitGap] = field(default_factory=list)

    def read(self, record: LogRecord) -> None:
        """Read the next record."""
        if record.offsets_topic_offset > self.next_offset:
            self.missing = record.offsets_topic_offset - 1
        self.next_offset = record.offsets_topic_offset + 1
        self.clock_seconds = max(self.clock_seconds, record.timestamp_ms // 1000)
        for group in [group for group, gap in self.open.items() if self.clock_seconds > gap.until_seconds]:
            self.close(group, "round_passed")
        for group in [group for group, ended in self.ended.items() if self.clock_seconds > ended.clock_seconds]:
            self.closed += self.ended.pop(group).rows
        try:
            self.apply_record(record)
        except UndecodableRecord:
            self.missing = record.offsets_topic_offset

    def apply_record(self, record: LogRecord) -> None:
        """Apply a record that can be decoded."""
        decoded, key = decode(record.key, record.value), record.key or b""
        position = Position(record.offsets_topic_partition, record.offsets_topic_offset, record.timestamp_ms)
        if decoded.key_type in COMMITS:
            is_tombstone = decoded.value is None or decoded.value["offset"] < 0
            committed = -1 if is_tombstone else decoded.value["offset"]
            self.apply_commit(canonical_key(key), record, committed, is_tombstone=is_tombstone)
            return
        reported, kind = log_event(decoded, position), RecordType(decoded.key_type)
        if reported is None:
            return
        group, group_id = group_bytes(key), reported[0]
        is_metadata = kind.name.endswith("GROUP_METADATA")
        if is_metadata and decoded.value is None:
            self.apply_tombstone(group, record)
        elif kind is RecordType.GROUP_METADATA and decoded.value["members"]:
            self.apply_boundary(group, group_id, decoded.value["generation"], record)
        elif kind in TARGET_EPOCHS and decoded.value is not None:
            self.apply_boundary(group, group_id, decoded.value["assignmentEpoch"], record)
        elif kind is RecordType.GROUP_METADATA or kind in GROUP_EPOCHS:
            self.apply_membership_change(group)

    def apply_tombstone(self, group: bytes, record: LogRecord) -> None:
        """End the group. Its row waits, because the next boundary can show that the group was not deleted."""
        before = len(self.closed)
        self.close(group, "group_deleted")
        rows, self.closed = self.closed[before:], self.closed[:before]
        if group in self.last_boundary:
            _, last_offset = self.last_boundary.pop(group)
            self.ended[group] = Ended(record.timestamp_ms, self.clock_seconds, last_offset, rows)

    def apply_membership_change(self, group: bytes) -> None:
        """From now on, a commit is possibly that of an operator."""
        if gap := self.open.get(group):
            gap.has_members = False

    def apply_commit(self, key: bytes, record: LogRecord, committed: int, *, is_tombstone: bool) -> None:
        """Apply a commit or the tombstone of a commit."""
        gap = self.open.get(group_bytes(key))
        is_by_member = gap is None or gap.has_members
        commit = Commit(record.offsets_topic_offset, record.timestamp_ms, committed, self.missing, is_by_member)
        if is_tombstone:
            self.live.pop(key, None)
            self.in_generation.pop(key, None)
            if gap and key not in gap.after:
                gap.deleted.add(key)
        else:
            self.live[key] = commit
            self.in_generation.setdefault(key, []).append(record.timestamp_ms)
            if gap and key not in gap.after:
                gap.after[key] = commit
        if gap and gap.before.keys() <= gap.after.keys() | gap.deleted:
            self.close(group_bytes(key), "all_committed")

    def apply_boundary(self, group: bytes, group_id: str, generation_id: int, record: LogRecord) -> None:
        """Open a gap at a rebalance."""
        if ended := self.ended.pop(group, None):
            is_continued = ended.tombstone_ms == record.timestamp_ms
            closed_by = "next_rebalance" if is_continued else "group_deleted"
            self.closed += [msgspec.structs.replace(row, closed_by=closed_by) for row in ended.rows]
            if is_continued:
                self.last_boundary[group] = (None, ended.last_offset)
        last_generation, last_offset = self.last_boundary.get(group, (None, None))
        if last_generation == generation_id:
            return
        self.close(group, "next_rebalance")
        own = [key for key in self.live if group_bytes(key) == group]
        times = [self.in_generation[key] for key in own if self.in_generation.get(key)]
        intervals, spans = sum(len(of_key) - 1 for of_key in times), sum(of_key[-1] - of_key[0] for of_key in times)
        is_known = last_offset is not None and self.missing <= last_offset and intervals > 0 and spans >= 0
        self.open[group] = Gap(
            boundary=record,
            group_id=group_id,
            generation_id=generation_id,
            until_seconds=self.clock_seconds + self.stuck_after_seconds,
            missing_below=self.missing,
            before={key: self.live[key] for key in own},
            usual_interval_ms=spans // intervals if is_known else None,
        )
        self.last_boundary[group] = (generation_id, record.offsets_topic_offset)
        for key in own:
            self.in_generation.pop(key, None)
        if not own:
            self.close(group, "nothing_before")

    def close(self, group: bytes, closed_by: str) -> None:
        """Close the open gap of a group and add its row, if the group has an open gap."""
        if (gap := self.open.pop(group, None)) is None:
            return
        gap_ms, reason = self._group_gap(gap)
        silent = [key for key in gap.before if key not in gap.after and key not in gap.deleted]
        is_whole = all(gap.before[key].offset >= self.missing for key in silent)
        waits = {
            key: self._duration_ms(gap.before[key], gap.after[key])
            for key in gap.before
            if key in _committed_first(gap)
        }
        is_known = is_whole and all(wait is not None for wait in waits.values())
        worst = min(waits, key=lambda key: (-(waits[key] or 0), key)) if waits and is_known else None
        fields = decode(worst, None).key if worst else {}
        record = gap.boundary
        self.closed.append(
            CommitGap(
                group_id=gap.group_id,
                position=Position(record.offsets_topic_partition, record.offsets_topic_offset, record.timestamp_ms),
                generation_id=gap.generation_id,
                commit_gap_ms=gap_ms,
                unknown_reason=reason,
                worst_topic=fields.get("topic"),
                worst_partition=fields.get("partition"),
                worst_gap_ms=waits[worst] if worst else None,
                silent_partitions=len(silent) if gap.before and is_whole else None,
                usual_interval_ms=gap.usual_interval_ms,
                recommitted_records=self._recommitted(gap) if is_whole else None,
                closed_by=closed_by,
                last_commit_ms=self._last_commit_ms(gap, reason),
            )
        )

    @staticmethod
    def _last_commit_ms(gap: Gap, reason: str | None) -> int | None:
        last = max(gap.before.values(), key=lambda commit: commit.offset, default=None)
        return None if last is None or reason == "offsets_missing" else last.ms

    @staticmethod
    def _recommitted(gap: Gap) -> int | None:
        pairs = [(gap.before[key], gap.after[key]) for key in gap.before if key in _committed_first(gap)]
        falls = [max(0, before.committed - after.committed) for before, after in pairs]
        is_known = all(after.missing_below <= before.offset for before, after in pairs)
        is_proven = all(after.is_by_member for fall, (_, after) in zip(falls, pairs, strict=True) if fall)
        return sum(falls) if pairs and is_known and is_proven else None

    def _group_gap(self, gap: Gap) -> tuple[int | None, str | None]:
        if not gap.before:
            return None, "no_commit_before" if gap.missing_below < 0 else "offsets_missing"
        before = max(gap.before.values(), key=lambda commit: commit.offset)
        if not gap.after:
            is_deleted = gap.before.keys() <= gap.deleted
            return None, "no_commit_after" if is_deleted or self.missing <= before.offset else "offsets_missing"
        first = min(gap.after.values(), key=lambda commit: commit.offset)
        if first.missing_below > before.offset:
            return None, "offsets_missing"
        return (first.ms - before.ms, None) if first.ms >= before.ms else (None, "clock_went_back")

    @staticmethod
    def _duration_ms(before: Commit, after: Commit) -> int | None:
        is_known = after.missing_below <= before.offset and after.ms >= before.ms
        return after.ms - before.ms if is_known else None


def _committed_first(gap: Gap) -> set[bytes]:
    return {key for key in gap.after if key not in gap.deleted}


def group_bytes(key: bytes) -> bytes:
    """Return the group id bytes of a record key."""
    return key[4 : 4 + int.from_bytes(key[2:4], "big")]


def compute_gaps(records: Iterable[LogRecord], stuck_after_seconds: int) -> list[CommitGap]:
    """Return the closed gaps, ordered by their boundaries."""
    partition_states: dict[int, PartitionModel] = {}
    for record in records:
        partition_states.setdefault(record.offsets_topic_partition, PartitionModel(stuck_after_seconds)).read(record)
    closed = [gap for partition_state in partition_states.values() for gap in partition_state.closed]
    return sorted(closed, key=lambda gap: gap.position)
