"""Checks offset commits in bulk, and reduces them to the last commits of each key.

Layouts (OffsetCommitKey v1, OffsetCommitValue v0-v4 of Kafka's coordinator):

    key    int16 type 1 · int16 length, group · int16 length, topic · int32 partition
    value  int16 version · int64 offset · [v3+: int32 leader epoch] · metadata · int64 commit time · [v1: int64 expiry]
           metadata is int16 length + bytes, in v4 an unsigned varint of length + 1; v4 ends with tagged fields

The *bulk rules* check whole columns with NumPy. The bulk rules accept only the common layouts. All other records go to
the exact decoder, for example records with a key of legacy type 0, with long metadata in v4, or with a negative offset.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.big_endian import BinaryColumn, BoolArray, Int64Array
from streaming.protocol import RecordType
from streaming.protocol.offset_commit import COMMITTED_OFFSET_AT, METADATA_LENGTH_AT

TOMBSTONE = -1
"""Committed offset that means "no commit". The key was deleted, or a client committed a negative offset.

Brokers accept any offset. OffsetFetch returns -1 for "no commit", so every negative offset counts as "no commit".
"""

WINDOW_COMMITS = 10
"""Number of newest commits from which the status of a partition is computed. Burrow calls this setting `intervals`."""

SLOT_MS = 1_000
"""Length of a slot in milliseconds. Only the last commit of a slot counts. Burrow uses `min-distance` instead."""

_LATEST_MS = 253_402_300_799_000
"""Upper limit of timestamps: the last second of the year 9999. Clients and coordinators can write any value.

Sums and differences of smaller timestamps fit into an int64, and each timestamp fits into a float.
"""

COMMIT_SCHEMA = pa.schema(
    [
        ("offsets_topic_partition", pa.int32()),
        ("key", pa.binary()),
        ("offsets_topic_offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("committed_offset", pa.int64()),
    ]
)

_TAIL_BYTES = {0: 8, 1: 16, 2: 8, 3: 8, 4: 8}


def canonical_key(key: bytes) -> bytes:
    """Convert the key of a commit to the key that current brokers write (type 1, no bytes after the partition).

    Kafka treats types 0 and 1 as equal, and ignores bytes after the partition. So a tombstone and its commit can have
    different key bytes. After the conversion, the two keys are equal, and the tombstone deletes the commit.

    >>> canonical_key(bytes.fromhex("0000 0001 67 0001 74 00000003 ff")).hex(" ")
    '00 01 00 01 67 00 01 74 00 00 00 03'
    """
    topic_at = 4 + int.from_bytes(key[2:4], "big")
    topic_bytes = int.from_bytes(key[topic_at : topic_at + 2], "big")
    return b"\x00\x01" + key[2 : topic_at + 2 + topic_bytes + 4]


def check_commits(key: BinaryColumn, value: BinaryColumn) -> tuple[BoolArray, Int64Array]:
    """For each row, return whether its bytes match a common layout exactly, and the committed offset.

    All other rows go to the decoder.
    """
    tombstone = value.length < 0
    committed = np.where(tombstone, TOMBSTONE, value.int_at(value.start + COMMITTED_OFFSET_AT, 8))
    is_sound = _keys_are_whole(key) & (tombstone | (_values_are_whole(value) & (committed >= 0)))
    return is_sound, committed


def _keys_are_whole(key: BinaryColumn) -> BoolArray:
    is_commit = (key.length >= 2) & (key.int_at(key.start, 2) == RecordType.OFFSET_COMMIT)
    group_bytes = key.int_at(key.start + 2, 2)
    topic_bytes = key.int_at(key.start + 4 + np.maximum(group_bytes, 0), 2)
    lengths_fit = (group_bytes >= 0) & (topic_bytes >= 0) & (key.length == 10 + group_bytes + topic_bytes)
    whole: BoolArray = is_commit & lengths_fit
    return whole


def _values_are_whole(value: BinaryColumn) -> BoolArray:
    version = np.where(value.length >= 2, value.int_at(value.start, 2), -1)
    whole = np.zeros(len(version), dtype=np.bool_)
    for known in METADATA_LENGTH_AT:
        if (is_known := version == known).any():
            whole |= is_known & _layout_fits(value, known)
    return whole


def _layout_fits(value: BinaryColumn, version: int) -> BoolArray:
    metadata_at = value.start + METADATA_LENGTH_AT[version]
    if version == 4:
        return _flexible_layout_fits(value, metadata_at)
    metadata_bytes = value.int_at(metadata_at, 2)
    expected = METADATA_LENGTH_AT[version] + 2 + metadata_bytes + _TAIL_BYTES[version]
    fits: BoolArray = (metadata_bytes >= 0) & (value.length == expected)
    return fits


def _flexible_layout_fits(value: BinaryColumn, metadata_at: Int64Array) -> BoolArray:
    length_plus_one = value.byte_at(metadata_at)
    tags_at = metadata_at + length_plus_one + _TAIL_BYTES[4]
    tail_bytes = value.start + value.length - tags_at
    tags, tag, tag_bytes = (value.byte_at(tags_at + at) for at in (0, 1, 2))
    no_tag = (tail_bytes == 1) & (tags == 0)
    topic_id_tag = (tail_bytes == 19) & (tags == 1) & (tag == 0) & (tag_bytes == 16)
    fits: BoolArray = (length_plus_one >= 1) & (length_plus_one < 128) & (no_tag | topic_id_tag)
    return fits


def last_per_key(commits: pa.Table) -> pa.Table:
    """For each pair of partition and key, return the last row. The order of the rows does not change.

    Rows of one partition must be in log order. If a key occurs in two partitions, the result has a row for each
    partition. So the result does not depend on the number of tasks that read the partitions.
    """
    identity = ["offsets_topic_partition", "key"]
    numbered = commits.select(identity).append_column("row", pa.array(np.arange(commits.num_rows)))
    last = numbered.group_by(identity, use_threads=False).aggregate([("row", "max")])["row_max"]
    return commits.take(pa.array(np.sort(last.to_numpy())))


def key_codes(commits: pa.Table) -> tuple[pa.Array, Int64Array]:
    """Return the distinct keys, and for each row the index of its key. This is slow, so call it once per table."""
    encoded = commits["key"].combine_chunks().dictionary_encode()
    return encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)


def clipped_times(timestamps_ms: Int64Array) -> Int64Array:
    """Limit the timestamps to values from 0 (the year 1970) to `_LATEST_MS`."""
    return np.clip(timestamps_ms, 0, _LATEST_MS)


def last_per_slot(commits: pa.Table, code: Int64Array | None = None) -> pa.Table:
    """For each key, return the last commit in each slot (SLOT_MS), in log order.

    The *window* of a partition contains only the last commit of each slot, and at most WINDOW_COMMITS commits. So the
    result has at most WINDOW_COMMITS commits per key. Slots depend only on timestamps. So commits can be reduced in one
    step or in several steps, with the same result. If a broker's clock goes back, a new commit can belong to an earlier
    slot. Then the new commit replaces the commit of this slot. If a slot has a tombstone and a later commit, the result
    contains both, because the tombstone must still remove the commits of earlier slots. `code` is the second result of
    `key_codes`.
    """
    slot = clipped_times(commits["timestamp_ms"].to_numpy()) // SLOT_MS
    key = pa.array(key_codes(commits)[1] if code is None else code)
    columns = [commits["offsets_topic_partition"], key, slot, pc.equal(commits["committed_offset"], TOMBSTONE)]
    identity = ["offsets_topic_partition", "key", "slot", "is_tombstone"]
    numbered = pa.table([*columns, np.arange(commits.num_rows)], names=[*identity, "row"])
    last = numbered.group_by(identity, use_threads=False).aggregate([("row", "max")])["row_max"]
    rows = np.sort(last.to_numpy())
    one_key = numbered.select(["offsets_topic_partition", "key"]).take(pa.array(rows))
    return commits.take(pa.array(rows[_count_later_equal_rows(one_key) < WINDOW_COMMITS]))


def _count_later_equal_rows(keys: pa.Table) -> Int64Array:
    partition, key = keys["offsets_topic_partition"].to_numpy(), keys["key"].to_numpy()
    by_key = np.lexsort((key, partition))
    starts = np.flatnonzero(
        (np.diff(partition[by_key], prepend=-1) != 0) | (np.diff(key[by_key].astype(np.int64), prepend=-1) != 0)
    )
    counts = np.diff(starts, append=len(by_key))
    newer = np.empty(len(by_key), dtype=np.int64)
    newer[by_key] = np.repeat(starts + counts, counts) - 1 - np.arange(len(by_key))
    return newer
