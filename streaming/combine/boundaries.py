"""Boundaries: the records between which a group's commits are told apart, and the clock of a Kafka partition.

A boundary is a record that gives members partitions, or may: a classic group's metadata with members, the epoch that a
KIP-848 or streams group's targets were computed for; and the tombstone that ends a group. Share groups commit no
offsets. Whether a generation is a new one is for those to say who remember the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.wire import BinaryColumn, Int64Array
from streaming.events import CONSUMER, STREAMS, GroupMetadataWritten, GroupTombstoned, LogEvent, TargetEpochWritten

_GROUP_AT = 2
"""Byte of every key of a group's record where its group stands: int16 length, then the name."""

_TICK_MS = 1_000


class Boundary(msgspec.Struct, frozen=True):
    """One boundary. `group` is as keys have it (`group_of`); `generation_id` None says that the group ended.

    `missing_below` is the highest offset below it, as far as the batch was read, that told us nothing; -1: none.
    """

    group: bytes
    group_id: str
    generation_id: int | None
    offsets_topic_offset: int
    timestamp_ms: int
    missing_below: int


def group_of(key: bytes) -> bytes:
    r"""Give the group of a record's key with its length in front: bytes, for a name may be no UTF-8.

    >>> group_of(bytes.fromhex("0001 0002 6767 0001 74 00000003"))
    b'\x00\x02gg'
    """
    return key[_GROUP_AT : _GROUP_AT + 2 + int.from_bytes(key[_GROUP_AT : _GROUP_AT + 2], "big")]


def boundary_at(key: bytes, group_id: str, event: LogEvent, missing_below: int) -> Boundary | None:
    """Give the boundary that a record is, if it is one."""
    generation_id: int | None = None
    if isinstance(event, GroupMetadataWritten):
        if not event.metadata.members:
            return None
        generation_id = event.metadata.generation_id
    elif isinstance(event, TargetEpochWritten):
        if event.epoch is None or event.group_type not in {CONSUMER, STREAMS}:
            return None
        generation_id = event.epoch
    elif not isinstance(event, GroupTombstoned):
        return None
    at = event.position
    return Boundary(group_of(key), group_id, generation_id, at.offsets_topic_offset, at.timestamp_ms, missing_below)


def group_numbers(keys: pa.Array, groups: Sequence[bytes]) -> Int64Array:
    r"""For each commit key the place of its group in `groups`, -1 where it is of none of them.

    >>> keys = pa.array([bytes.fromhex(key) for key in ("0001 0001 67 0001 74 00000003", "0001 0001 68 0000 00000003")])
    >>> group_numbers(keys, [b"\0\1h"]).tolist()
    [-1, 0]
    """
    numbers = np.full(len(keys), -1, dtype=np.int64)
    if not len(keys) or not groups:
        return numbers
    column = BinaryColumn.of(keys)
    group_bytes = 2 + column.int_at(column.start + _GROUP_AT, 2)
    for length in sorted({len(group) for group in groups}):
        rows = np.flatnonzero(group_bytes == length)
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
    """Where records of one partition, in log order, take its clock on: rows of (seconds, offset, missing_below).

    A partition's clock is the latest time on any record so far, in whole seconds: it never goes back, as the clocks of
    two brokers that lead the partition in turn may.

    >>> clock_steps(3, *(np.array(of) for of in ([7, 8, 9], [3000, 5999, 4000], [-1, -1, -1]))).tolist()
    [[5, 8, -1]]
    """
    latest = np.maximum.accumulate(np.concatenate(([clock_seconds], np.floor_divide(timestamp_ms, _TICK_MS))))
    rows = np.flatnonzero(np.diff(latest) > 0)
    return np.column_stack([latest[rows + 1], offsets_topic_offset[rows], missing_below[rows]])


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of one partition through one batch. `steps` are as in `clock_steps`, maybe with earlier times among."""

    start_seconds: int
    steps: Int64Array

    @classmethod
    def of(cls, start_seconds: int, encoded: bytes) -> Clock:
        """The clock that stood at `start_seconds` before the batch; `encoded` is of `encode_steps`."""
        steps = np.frombuffer(encoded, dtype="<i8").reshape(-1, 3)
        return cls(start_seconds, steps[steps[:, 0] > start_seconds])

    @property
    def end_seconds(self) -> int:
        """What it says after the batch."""
        return int(self.steps[-1, 0]) if len(self.steps) else self.start_seconds

    def seconds_at(self, offsets_topic_offset: int) -> int:
        """What it says with the record at an offset of the batch read."""
        passed = int(np.searchsorted(self.steps[:, 1], offsets_topic_offset, side="right"))
        return int(self.steps[passed - 1, 0]) if passed else self.start_seconds

    def first_after(self, seconds: int) -> tuple[int, int] | None:
        """The first record later than that, and the highest missing offset below it; None: not in the batch."""
        at = int(np.searchsorted(self.steps[:, 0], seconds, side="right"))
        return (int(self.steps[at, 1]), int(self.steps[at, 2])) if at < len(self.steps) else None


def encode_steps(steps: Sequence[Int64Array]) -> bytes:
    """Pieces of `clock_steps`, in log order, as bytes."""
    return np.concatenate(steps).astype("<i8").tobytes() if steps else b""
