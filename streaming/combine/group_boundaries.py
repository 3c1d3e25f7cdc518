"""Finds the boundaries of groups, and computes a partition's clock (`clock_steps`).

The commits of a group are counted from one boundary to the next. A boundary is one of these records:

- the GroupMetadata record of a classic group that has members,
- the record with the target assignment epoch of a KIP-848 or streams group,
- the tombstone of a group.

The first two kinds of records can change the partitions of members. Share groups commit no offsets, so they have no
boundaries. The caller checks whether a boundary has a new generation.

A *membership change* is a record after which the group can be empty. While a group is empty, an operator can commit
offsets. A membership change is one of these records:

- the GroupMetadata record of a classic group that has no members,
- the record with the group epoch of a KIP-848 or streams group. The coordinator writes the record with the target
  assignment epoch when a member sends its next heartbeat. Until that record, the group can be empty.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.big_endian import BinaryColumn, Int64Array
from streaming.events import (
    CONSUMER,
    STREAMS,
    EpochWritten,
    GroupMetadataWritten,
    GroupTombstoned,
    LogEvent,
    TargetEpochWritten,
)

_GROUP_AT = 2
"""Byte position of the group in a record key. The group is an int16 length, followed by the group id."""

_TICK_MS = 1_000
"""Resolution of a partition's clock in milliseconds."""


class Boundary(msgspec.Struct, frozen=True):
    """One boundary of a group.

    Attributes:
        group: the group's part of a record key, as returned by `group_bytes`.
        generation_id: None if the record is the tombstone of the group.
        missing_below: the highest missing offset below the boundary in this batch, or -1.

    """

    group: bytes
    group_id: str
    generation_id: int | None
    offsets_topic_offset: int
    timestamp_ms: int
    missing_below: int


class MembershipChange(msgspec.Struct, frozen=True):
    """A record after which a group can be empty. `group` is a result of `group_bytes`."""

    group: bytes
    offsets_topic_offset: int


def group_bytes(key: bytes) -> bytes:
    r"""Return the group's part of a record key: the length of the group id, then the group id.

    >>> group_bytes(bytes.fromhex("0001 0002 6767 0001 74 00000003"))
    b'\x00\x02gg'
    """
    return key[_GROUP_AT : _GROUP_AT + 2 + int.from_bytes(key[_GROUP_AT : _GROUP_AT + 2], "big")]


def find_boundary(key: bytes, group_id: str, event: LogEvent, missing_below: int) -> Boundary | None:
    """Return the boundary, or None if the record is not a boundary."""
    generation_id: int | None = None
    if isinstance(event, GroupMetadataWritten) and event.metadata.members:
        generation_id = event.metadata.generation_id
    elif isinstance(event, TargetEpochWritten) and event.epoch is not None and event.group_type in {CONSUMER, STREAMS}:
        generation_id = event.epoch
    elif not isinstance(event, GroupTombstoned):
        return None
    at = event.position
    return Boundary(group_bytes(key), group_id, generation_id, at.offsets_topic_offset, at.timestamp_ms, missing_below)


def find_membership_change(key: bytes, event: LogEvent) -> MembershipChange | None:
    """Return the membership change, or None if the record is not a membership change."""
    is_empty = isinstance(event, GroupMetadataWritten) and not event.metadata.members
    if is_empty or (isinstance(event, EpochWritten) and event.group_type in {CONSUMER, STREAMS}):
        return MembershipChange(group_bytes(key), event.position.offsets_topic_offset)
    return None


def group_numbers(keys: pa.Array, groups: Sequence[bytes]) -> Int64Array:
    r"""For each commit key, return the index of the key's group in `groups`. The index of an unknown group is -1.

    >>> keys = pa.array([bytes.fromhex(key) for key in ("0001 0001 67 0001 74 00000003", "0001 0001 68 0000 00000003")])
    >>> group_numbers(keys, [b"\0\1h"]).tolist()
    [-1, 0]
    """
    numbers = np.full(len(keys), -1, dtype=np.int64)
    if not len(keys) or not groups:
        return numbers
    column = BinaryColumn.of(keys)
    group_lengths = 2 + column.int_at(column.start + _GROUP_AT, 2)
    for length in sorted({len(group) for group in groups}):
        rows = np.flatnonzero(group_lengths == length)
        of_length = [number for number, group in enumerate(groups) if len(group) == length]
        found = pc.index_in(
            pc.binary_slice(keys.take(pa.array(rows)), _GROUP_AT, _GROUP_AT + length),
            value_set=pa.array([groups[number] for number in of_length], keys.type),
        )
        place = pc.fill_null(found, -1).to_numpy(zero_copy_only=False)
        numbers[rows] = np.where(place >= 0, np.array(of_length, dtype=np.int64)[place], -1)
    return numbers


def clock_steps(
    clock_seconds: int, offsets_topic_offset: Int64Array, timestamp_ms: Int64Array, missing_below: Int64Array
) -> Int64Array:
    """Return the records that advance the clock of one partition, as rows of (seconds, offset, missing_below).

    The clock is the maximum timestamp of all records so far, in whole seconds. So it never goes back, even if a new
    leader of the partition has a slower system clock.

    >>> clock_steps(3, *(np.array(of) for of in ([7, 8, 9], [3000, 5999, 4000], [-1, -1, -1]))).tolist()
    [[5, 8, -1]]
    """
    latest = np.maximum.accumulate(np.concatenate(([clock_seconds], np.floor_divide(timestamp_ms, _TICK_MS))))
    rows = np.flatnonzero(np.diff(latest) > 0)
    return np.column_stack([latest[rows + 1], offsets_topic_offset[rows], missing_below[rows]])


class Clock:
    """The clock of one partition during one batch. `start_seconds` is its value before the batch.

    `encoded` is a result of `encode_steps`. Steps up to `start_seconds` are left out.
    """

    def __init__(self, start_seconds: int, encoded: bytes) -> None:
        steps = np.frombuffer(encoded, dtype="<i8").reshape(-1, 3)
        self.steps = steps[steps[:, 0] > start_seconds]
        self.start_seconds = start_seconds
        self.end_seconds = int(self.steps[-1, 0]) if len(self.steps) else start_seconds

    def seconds_at(self, offsets_topic_offset: int) -> int:
        """Return the value of the clock after the record at this offset."""
        steps_done = int(np.searchsorted(self.steps[:, 1], offsets_topic_offset, side="right"))
        return int(self.steps[steps_done - 1, 0]) if steps_done else self.start_seconds

    def first_after(self, seconds: int) -> tuple[int, int] | None:
        """Return the offset of the first record that sets the clock to a time after `seconds`, or None.

        The second value is the highest missing offset below this record.
        """
        at = int(np.searchsorted(self.steps[:, 0], seconds, side="right"))
        return (int(self.steps[at, 1]), int(self.steps[at, 2])) if at < len(self.steps) else None


def encode_steps(steps: Sequence[Int64Array]) -> bytes:
    """Encode the results of `clock_steps` as bytes. The results must be in log order."""
    return np.concatenate(steps).astype("<i8").tobytes() if steps else b""
