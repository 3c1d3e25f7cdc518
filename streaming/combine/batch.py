"""Converts an Arrow batch of records to NumPy columns, and returns single records for the decoder."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.big_endian import BinaryColumn
from streaming.combine.commit_runs import READ_COMMIT_SCHEMA
from streaming.combine.commits import TOMBSTONE, canonical_key, check_commits, clipped_times
from streaming.events import Position


class RecordsBatch:
    """The columns of one batch. `is_commit` marks the rows that the bulk rules or the decoder accepted as commits.

    `missing_below` contains, for each row, the highest missing offset below the row's offset, or -1. An offset is
    missing if Spark returned no record for it (set by the combiner), or if its record could not be decoded. For speed,
    `apply_missing` adds the offsets of all undecodable records in one step.
    """

    def __init__(self, records: pa.RecordBatch) -> None:
        self._keys = records.column("key")
        self._values = records.column("value")
        self.offsets_topic_partition = records.column("offsets_topic_partition").to_numpy()
        self.offsets_topic_offset = records.column("offsets_topic_offset").to_numpy()
        self.timestamp_ms = clipped_times(records.column("timestamp_ms").to_numpy())
        self.missing_below = np.full(records.num_rows, -1, dtype=np.int64)
        key, value = BinaryColumn.of(self._keys), BinaryColumn.of(self._values)
        self.is_commit, self._committed_offset = check_commits(key, value)
        self.is_tombstone = value.length < 0
        self._respelled: dict[int, bytes] = {}
        self._undecodable_rows: list[int] = []
        self._last_undecodable: dict[int, int] = {}

    def record(self, row: int) -> tuple[Position, bytes | None, bytes | None]:
        """Return the position, key and value of one row."""
        position = Position(
            int(self.offsets_topic_partition[row]), int(self.offsets_topic_offset[row]), int(self.timestamp_ms[row])
        )
        return position, self._keys[row].as_py(), self._values[row].as_py()

    def add_decoded_commit(self, row: int, committed_offset: int) -> None:
        """Add a commit that the decoder read, in the row of its record. So all commits stay in log order."""
        self.is_commit[row] = True
        self._committed_offset[row] = max(committed_offset, TOMBSTONE)
        key = self._keys[row].as_py()
        if (canonical := canonical_key(key)) != key:
            self._respelled[row] = canonical

    def mark_missing(self, row: int) -> None:
        """Mark the offset of an undecodable record as missing. Call this function in log order."""
        self._undecodable_rows.append(row)
        self._last_undecodable[int(self.offsets_topic_partition[row])] = int(self.offsets_topic_offset[row])

    def missing_below_row(self, row: int) -> int:
        """Return `missing_below` of a row. The result includes the offsets that `mark_missing` has marked so far."""
        marked = self._last_undecodable.get(int(self.offsets_topic_partition[row]), -1)
        return max(int(self.missing_below[row]), marked)

    def apply_missing(self) -> None:
        """Update `missing_below` with all offsets that `mark_missing` has marked."""
        if not self._undecodable_rows:
            return
        marked = np.full(len(self.missing_below), -1, dtype=np.int64)
        marked[self._undecodable_rows] = self.offsets_topic_offset[self._undecodable_rows]
        for offsets_topic_partition in self._last_undecodable:
            rows = np.flatnonzero(self.offsets_topic_partition == offsets_topic_partition)
            later, below = rows[1:], np.maximum.accumulate(marked[rows])[:-1]
            self.missing_below[later] = np.maximum(self.missing_below[later], below)

    def commits(self) -> pa.Table:
        """Return a copy of all accepted commits in log order, so that Spark can free the memory of its batch."""
        rows, keys = pa.array(np.flatnonzero(self.is_commit)), self._keys
        if self._respelled:
            is_respelled = np.zeros(len(keys), dtype=np.bool_)
            is_respelled[list(self._respelled)] = True
            canonical = pa.array([self._respelled[row] for row in sorted(self._respelled)], keys.type)
            keys = pc.replace_with_mask(keys, pa.array(is_respelled), canonical)
        columns = [
            pa.array(self.offsets_topic_partition),
            keys,
            pa.array(self.offsets_topic_offset),
            pa.array(self.timestamp_ms),
            pa.array(self._committed_offset),
            pa.array(self.missing_below),
        ]
        return pa.table(columns, schema=READ_COMMIT_SCHEMA).take(rows)
