"""Compare the responses of a poll with the stored state, and return the rows that update the stored state.

Coordinators' responses have no log offset, so each event gets a number that replaces the offset. The first number of a
poll is its start time in milliseconds, multiplied by `NUMBERS_PER_MS`, or the last number of the previous poll plus 1
if this is higher. Each further event gets the next number. So numbers increase even with a new checkpoint. Commits are
distributed over `POLLED_PARTITIONS` partitions. All commits of a group are in the same partition. If anything changed,
the first partition gets a row. Any other partition gets a row only if at least one of its commits changed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from zlib import crc32

import pyarrow as pa

from streaming.combine.combiner import GROUP_KIND, PARTITION_KIND, StateRow
from streaming.combine.commits import COMMIT_SCHEMA, TOMBSTONE
from streaming.combine.decode_failures import DecodeFailures
from streaming.combine.partition_state import PartitionBatch, commits_bytes, encode_partition_event
from streaming.events import POLLED_PARTITION, GroupDescribed, GroupTombstoned, Position, encode_event
from streaming.group.advance import advance
from streaming.group.listing import DescribedGroup, GroupNotFound, OffsetsByPartition, Unanswered
from streaming.group.snapshot import GroupSnapshot
from streaming.polled.descriptions import described_event
from streaming.polled.poll import Poll
from streaming.protocol.offset_commit import offset_commit_key

POLLED_PARTITIONS: Final = 16
"""Number of partitions that contain the commits of all groups."""
NUMBERS_PER_MS: Final = 64
"""Event numbers per millisecond. Numbers must be below 2**48 (`position_numbers`), which is true until 2109."""

Commit = tuple[str, str, int, int]
"""Group, topic, partition and committed offset."""


@dataclass(frozen=True, slots=True)
class KnownState:
    """The content of the state store. `last_number` is the number of the last polled event, or -1."""

    groups: Mapping[str, GroupSnapshot] = field(default_factory=dict)
    commits: Mapping[str, OffsetsByPartition] = field(default_factory=dict)
    last_number: int = -1


def commits_by_group(commits: pa.Table) -> Mapping[str, OffsetsByPartition]:
    """Convert a table of committed offsets to `KnownState.commits`."""
    by_group: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
    columns = (commits[name].to_pylist() for name in ("group_id", "topic", "partition", "committed_offset"))
    for group_id, topic, partition, committed_offset in zip(*columns, strict=True):
        by_group[group_id][topic, partition] = committed_offset
    return by_group


@dataclass(frozen=True, slots=True)
class Differences:
    """The rows for the changes, and the numbers of the first and the last event. No change means no rows."""

    rows: tuple[StateRow, ...]
    first_number: int
    last_number: int


def differences(poll: Poll, known: KnownState, *, is_marked: bool = False) -> Differences:
    """Compare a poll with the known state. If `is_marked` is True, return at least one row.

    Then the position of the query shows when the query has read the whole poll.
    """
    first = max(known.last_number + 1, poll.began_at_ms * NUMBERS_PER_MS)
    events = _GroupEvents(first, poll.began_at_ms)
    for group_id, description in sorted(poll.descriptions.items()):
        events.add_description(group_id, description, known.groups.get(group_id, GroupSnapshot(group_id)))
    commits = list(_changed_commits(poll, known.commits))
    last = max(first, events.next_number - 1)
    if not (events.rows or commits or is_marked):
        return Differences((), first, last)
    return Differences((*events.rows, *_state_rows(first, last, events, commits)), first, last)


class _GroupEvents:
    def __init__(self, first_number: int, polled_at_ms: int) -> None:
        self.next_number = first_number
        self.rows: list[StateRow] = []
        self.counts: Counter[str] = Counter()
        self.decode_failures = DecodeFailures()
        self.polled_at_ms = polled_at_ms

    def add_description(
        self, group_id: str, description: DescribedGroup | GroupNotFound | Unanswered, known: GroupSnapshot
    ) -> None:
        """Add an event if the description differs from the known state. If the request failed, add no event."""
        position = Position(POLLED_PARTITION, self.next_number, self.polled_at_ms)
        if isinstance(description, GroupNotFound) and known.position is not None and not known.is_over:
            self._add(group_id, GroupTombstoned(position), "group_gone")
        elif isinstance(description, DescribedGroup):
            event, refusals = described_event(group_id, description, position)
            if advance(known, event).position != known.position:
                self._add(group_id, event, "group_described")
                for raw, refusal in refusals:
                    self.decode_failures.add(position, None, raw, refusal)

    def _add(self, group_id: str, event: GroupDescribed | GroupTombstoned, kind: str) -> None:
        self.rows.append((GROUP_KIND, group_id, encode_event(event)))
        self.counts[kind] += 1
        self.next_number += 1


def _changed_commits(poll: Poll, known: Mapping[str, OffsetsByPartition]) -> Iterator[Commit]:
    """Yield the new, changed and deleted commits of the groups with a response. Deleted commits have TOMBSTONE."""
    gone = {group_id for group_id, one in poll.descriptions.items() if isinstance(one, GroupNotFound)}
    answers: dict[str, OffsetsByPartition | Unanswered] = {**poll.offsets, **{group_id: {} for group_id in gone}}
    for group_id, answer in sorted(answers.items()):
        if isinstance(answer, Unanswered):
            continue
        before = known.get(group_id, {})
        for (topic, partition), committed_offset in answer.items():
            if before.get((topic, partition)) != committed_offset:
                yield group_id, topic, partition, committed_offset
        for topic, partition in before.keys() - answer.keys():
            yield group_id, topic, partition, TOMBSTONE


def polled_partition(group_id: str) -> int:
    """Return the partition number for a group's commits: a number from -1 to -POLLED_PARTITIONS.

    >>> polled_partition("payments")
    -3
    """
    return POLLED_PARTITION - crc32(group_id.encode()) % POLLED_PARTITIONS


def _state_rows(
    first_number: int, last_number: int, events: _GroupEvents, commits: Iterable[Commit]
) -> Iterator[StateRow]:
    """The first partition always gets a row, because the row contains the last event number."""
    by_partition: dict[int, list[Commit]] = defaultdict(list, {POLLED_PARTITION: []})
    for commit in commits:
        by_partition[polled_partition(commit[0])].append(commit)
    for partition, of_partition in sorted(by_partition.items(), reverse=True):
        is_first = partition == POLLED_PARTITION
        counts = Counter(events.counts if is_first else {})
        counts["commit_polled"] += len(of_partition)
        batch = PartitionBatch(
            offsets_topic_partition=partition,
            first_offset=first_number,
            last_offset=last_number,
            last_missing_offset=-1,
            records_read=dict(+counts),
            decode_failures=events.decode_failures.kept() if is_first else (),
            failure_summaries=events.decode_failures.summaries() if is_first else (),
            commits=commits_bytes(_commits_table(partition, last_number, events.polled_at_ms, of_partition)),
        )
        yield PARTITION_KIND, str(partition), encode_partition_event(batch)


def _commits_table(partition: int, last_number: int, polled_at_ms: int, commits: list[Commit]) -> pa.Table:
    """Responses have no commit time, so each commit gets the time of the poll."""
    count = len(commits)
    columns = {
        "offsets_topic_partition": [partition] * count,
        "key": [offset_commit_key(group_id, topic, partition) for group_id, topic, partition, _ in commits],
        "offsets_topic_offset": [last_number] * count,
        "timestamp_ms": [polled_at_ms] * count,
        "committed_offset": [committed_offset for *_, committed_offset in commits],
    }
    return pa.table(columns, schema=COMMIT_SCHEMA)
