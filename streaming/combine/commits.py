"""Offset commits, checked and reduced in bulk: one row a key, the last commit winning.

Layouts (OffsetCommitKey v0-v1, OffsetCommitValue v0-v4 of Kafka's coordinator):

    key    int16 type · int16 length, group · int16 length, topic · int32 partition
    value  int16 version · int64 offset · [v3+: int32 leader epoch] · metadata · int64 commit time · [v1: int64 expiry]
           metadata is int16 length + bytes, in v4 an unsigned varint of length + 1; v4 ends with tagged fields

A row the rules here cannot vouch for (a long v4 metadata, an unusual tag, bytes missing) is not judged: it goes to the
exact decoder. So the fast path may be strict without ever refusing a good record.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.combine.wire import BinaryColumn, BoolArray, Int64Array

TOMBSTONE = -1
"""Committed offset that stands for "this key was deleted"; Kafka never writes a negative committed offset."""

COMMIT_SCHEMA = pa.schema(
    [
        ("kafka_partition", pa.int32()),
        ("key", pa.binary()),
        ("kafka_offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("committed_offset", pa.int64()),
    ]
)

_METADATA_AT = {0: 10, 1: 10, 2: 10, 3: 14, 4: 14}
_TAIL_BYTES = {0: 8, 1: 16, 2: 8, 3: 8, 4: 8}


@dataclass(frozen=True, slots=True)
class CommitCheck:
    """What the bulk rules say of each row: a sound commit, or not theirs to say."""

    sound: BoolArray
    committed_offset: Int64Array


def key_types(key: BinaryColumn) -> Int64Array:
    """Record type (the key's leading int16) of every row; -1 where the key is null or too short to have one."""
    return np.where(key.length >= 2, key.int_at(key.start, 2), -1)


def check_commits(key: BinaryColumn, value: BinaryColumn, types: Int64Array) -> CommitCheck:
    """Vouch for commits and tombstones whose bytes follow the layout exactly; leave the rest to the decoder."""
    key_sound = ((types == 0) | (types == 1)) & _keys_are_whole(key)
    tombstone = value.length < 0
    committed = np.where(tombstone, TOMBSTONE, value.int_at(value.start + 2, 8))
    sound = key_sound & (tombstone | (_values_are_whole(value, types) & (committed >= 0)))
    return CommitCheck(sound, committed)


def _keys_are_whole(key: BinaryColumn) -> BoolArray:
    group_bytes = key.int_at(key.start + 2, 2)
    topic_bytes = key.int_at(key.start + 4 + np.maximum(group_bytes, 0), 2)
    whole: BoolArray = (group_bytes >= 0) & (topic_bytes >= 0) & (key.length == 10 + group_bytes + topic_bytes)
    return whole


def _values_are_whole(value: BinaryColumn, types: Int64Array) -> BoolArray:
    version = np.where(value.length >= 2, value.int_at(value.start, 2), -1)
    whole = np.zeros(len(version), dtype=np.bool_)
    for known in np.unique(version):
        if int(known) in _METADATA_AT:
            whole |= (version == known) & _layout_fits(value, int(known))
    allowed: BoolArray = whole & ((types == 1) | (version == 0))  # key type 0 only ever had value version 0
    return allowed


def _layout_fits(value: BinaryColumn, version: int) -> BoolArray:
    metadata_at = value.start + _METADATA_AT[version]
    if version == 4:
        return _flexible_layout_fits(value, metadata_at)
    metadata_bytes = value.int_at(metadata_at, 2)
    expected = _METADATA_AT[version] + 2 + metadata_bytes + _TAIL_BYTES[version]
    fits: BoolArray = (metadata_bytes >= 0) & (value.length == expected)
    return fits


def _flexible_layout_fits(value: BinaryColumn, metadata_at: Int64Array) -> BoolArray:
    length_plus_one = value.byte_at(metadata_at)
    tags_at = metadata_at + length_plus_one + _TAIL_BYTES[4]
    tail_bytes = value.start + value.length - tags_at
    no_tag = (tail_bytes == 1) & (value.byte_at(tags_at) == 0)
    topic_id_tag = (
        (tail_bytes == 19)
        & (value.byte_at(tags_at) == 1)
        & (value.byte_at(tags_at + 1) == 0)
        & (value.byte_at(tags_at + 2) == 16)
    )
    fits: BoolArray = (length_plus_one >= 1) & (length_plus_one < 128) & (no_tag | topic_id_tag)
    return fits


def last_per_key(commits: pa.Table) -> pa.Table:
    """One row a key, the last one. Rows of one key must stand in log order, which is how a partition is read."""
    numbered = pa.table({"key": commits["key"], "row": pa.array(np.arange(commits.num_rows))})
    last = numbered.group_by("key").aggregate([("row", "max")])["row_max"]
    return commits.take(pa.array(np.sort(last.to_numpy())))
