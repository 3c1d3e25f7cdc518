"""The last commit of every (group, topic, partition), as columns.

A key is decoded once, when it is first seen; from then on a commit is three numbers written at its row. Rows of deleted
keys are given up when they are the most: groups come and go for ever, and memory must not follow them.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.commits import TOMBSTONE
from streaming.combine.wire import Int64Array
from streaming.protocol import decode

_FIRST_ROWS = 1024
_REPLACEMENT = "\ufffd"


@dataclass(slots=True)
class CommitBook:
    """The growing book. One thread writes, others take views."""

    _rows: dict[bytes, int] = field(default_factory=dict)
    _garbled: dict[tuple[str, str, int], int] = field(default_factory=dict)
    _group_ids: list[str] = field(default_factory=list)
    _topics: list[str] = field(default_factory=list)
    _partitions: list[int] = field(default_factory=list)
    _numbers: Int64Array = field(default_factory=lambda: np.full((3, _FIRST_ROWS), -1, dtype=np.int64))
    _tidy_at: int = _FIRST_ROWS
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def apply(self, commits: pa.Table) -> None:
        """Write reduced commits (COMMIT_SCHEMA) in. What is older than known changes nothing: twice is as once."""
        with self._lock:
            if len(self._group_ids) >= self._tidy_at:
                self._give_up_deleted()
            rows = np.array([self._row(key) for key in commits["key"].to_pylist()], dtype=np.int64)
            kafka_offsets = commits["kafka_offset"].to_numpy()
            newer = kafka_offsets > self._numbers[2, rows]
            rows = rows[newer]
            self._numbers[0, rows] = commits["committed_offset"].to_numpy()[newer]
            self._numbers[1, rows] = commits["timestamp_ms"].to_numpy()[newer]
            self._numbers[2, rows] = kafka_offsets[newer]

    def view(self) -> pa.Table:
        """What is known now, as the first columns of LAG_SCHEMA, safe from later writes; deleted keys are left out."""
        with self._lock:
            count = len(self._group_ids)
            columns = {
                "group_id": pa.array(self._group_ids, pa.string()),
                "topic": pa.array(self._topics, pa.string()),
                "partition": pa.array(self._partitions, pa.int32()),
                "committed_offset": pa.array(self._numbers[0, :count].copy()),
                "commit_timestamp_ms": pa.array(self._numbers[1, :count].copy()),
            }
        table = pa.table(columns)
        return table.filter(pc.not_equal(table["committed_offset"], TOMBSTONE))

    def _row(self, key: bytes) -> int:
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._row_of_name(key)
        return row

    def _row_of_name(self, key: bytes) -> int:
        """Find or make the row of a key seen for the first time.

        Bytes that are not UTF-8 are read as Java reads them, so that several keys can have one name. One name is one
        row: two series of the same labels would break the scrape.
        """
        fields = decode(key, None).key
        group_id, topic, partition = fields["group"], fields["topic"], fields["partition"]
        if _REPLACEMENT in group_id or _REPLACEMENT in topic:
            name = (group_id, topic, partition)
            if name not in self._garbled:
                self._garbled[name] = self._add(*name)
            return self._garbled[name]
        return self._add(group_id, topic, partition)

    def _add(self, group_id: str, topic: str, partition: int) -> int:
        row = len(self._group_ids)
        self._group_ids.append(group_id)
        self._topics.append(topic)
        self._partitions.append(partition)
        if row >= self._numbers.shape[1]:
            self._numbers = np.concatenate([self._numbers, np.full_like(self._numbers, -1)], axis=1)
        return row

    def _give_up_deleted(self) -> None:
        """Renumber the live rows if they are fewer than half; look again when there are twice as many."""
        count = len(self._group_ids)
        kept = np.flatnonzero(self._numbers[0, :count] != TOMBSTONE)
        if 2 * len(kept) < count:
            row_after = dict(zip(kept.tolist(), range(len(kept)), strict=True))
            self._rows = {key: row_after[row] for key, row in self._rows.items() if row in row_after}
            self._garbled = {name: row_after[row] for name, row in self._garbled.items() if row in row_after}
            self._group_ids = [self._group_ids[row] for row in kept]
            self._topics = [self._topics[row] for row in kept]
            self._partitions = [self._partitions[row] for row in kept]
            numbers = np.full((3, max(_FIRST_ROWS, 2 * len(kept))), -1, dtype=np.int64)
            numbers[:, : len(kept)] = self._numbers[:, kept]
            self._numbers = numbers
        self._tidy_at = max(_FIRST_ROWS, 2 * len(self._group_ids))
