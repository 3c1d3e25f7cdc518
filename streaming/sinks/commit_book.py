"""The last commit of every (group, topic, partition), as columns.

A key is decoded once, when it is first seen; from then on a commit is three numbers written at its row.
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


@dataclass(slots=True)
class CommitBook:
    """The growing book. One thread writes, others take views."""

    _rows: dict[bytes, int] = field(default_factory=dict)
    _group_ids: list[str] = field(default_factory=list)
    _topics: list[str] = field(default_factory=list)
    _partitions: list[int] = field(default_factory=list)
    _numbers: Int64Array = field(default_factory=lambda: np.full((3, _FIRST_ROWS), -1, dtype=np.int64))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def apply(self, commits: pa.Table) -> None:
        """Write reduced commits (COMMIT_SCHEMA) in. What is older than known changes nothing: twice is as once."""
        with self._lock:
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
                "committed_offset": pa.array(self._numbers[0, :count]),
                "commit_timestamp_ms": pa.array(self._numbers[1, :count]),
            }
        table = pa.table(columns)
        return table.filter(pc.not_equal(table["committed_offset"], TOMBSTONE))

    def _row(self, key: bytes) -> int:
        # The two key types 0 and 1 name the same commit if the bytes behind the type are equal.
        named = key[2:]
        row = self._rows.get(named)
        return self._add(key, named) if row is None else row

    def _add(self, key: bytes, named: bytes) -> int:
        row = self._rows[named] = len(self._group_ids)
        fields = decode(key, None).key
        self._group_ids.append(fields["group"])
        self._topics.append(fields["topic"])
        self._partitions.append(fields["partition"])
        if row >= self._numbers.shape[1]:
            self._numbers = np.concatenate([self._numbers, np.full_like(self._numbers, -1)], axis=1)
        return row
