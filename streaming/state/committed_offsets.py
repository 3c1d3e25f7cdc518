"""The last commit of every (group, topic, partition), as columns.

A key is decoded once, when it is first seen; from then on a commit is four numbers written at its row. Rows of deleted
keys are given up when they are the most: groups come and go for ever, and memory must not follow them.

A key's commits stand in one partition of `__consumer_offsets`, and only there their offsets have an order. In a
different partition a commit counts only if that is the group's home (`combine.own_partitions`): there the key begins
anew.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streaming.combine.commits import TOMBSTONE
from streaming.combine.own_partitions import OwnPartitions
from streaming.combine.wire import BoolArray, Int64Array
from streaming.evaluation.lag.commit_windows import CommitWindows, Windows, decode_windows, encode_windows
from streaming.protocol import decode

_FIRST_ROWS = 1024
_KEYED_SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("offsets_topic_offset", pa.int64()),
        ("offsets_topic_partition", pa.int64()),
    ]
)
_NUMBERS = ("committed_offset", "timestamp_ms", "offsets_topic_offset", "offsets_topic_partition")
_NOWHERE = -2
"""In place of a Kafka partition: no commit was written yet, or the home is not known. POLLED_PARTITION is different."""

_REPLACEMENT = "\ufffd"


@dataclass(frozen=True, slots=True)
class CommittedOffsetsView:
    """The last commits at one moment.

    `commits` are the first columns of LAG_SCHEMA; beside them stand each one's row and log offset. Rows mean something
    as long as the book's `numbering` is the same.
    """

    commits: pa.Table
    rows: Int64Array
    kafka_offsets: Int64Array
    numbering: int

    def only(self, is_wanted: BoolArray) -> CommittedOffsetsView:
        """The commits of some rows."""
        commits = self.commits.filter(pa.array(is_wanted))
        return CommittedOffsetsView(commits, self.rows[is_wanted], self.kafka_offsets[is_wanted], self.numbering)


@dataclass(slots=True)
class CommittedOffsets:
    """The growing book. One thread writes, others take views."""

    _own_partitions: OwnPartitions = field(default_factory=OwnPartitions)
    _rows: dict[bytes, int] = field(default_factory=dict)
    _garbled: dict[tuple[str, str, int], int] = field(default_factory=dict)
    _group_ids: list[str] = field(default_factory=list)
    _topics: list[str] = field(default_factory=list)
    _partitions: list[int] = field(default_factory=list)
    _homes: list[int] = field(default_factory=list)
    _numbers: Int64Array = field(default_factory=lambda: _no_numbers(_FIRST_ROWS))
    _windows: CommitWindows = field(default_factory=CommitWindows)
    _numbering: int = 0
    _tidy_at: int = _FIRST_ROWS
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def apply(self, commits: pa.Table) -> None:
        """Write reduced commits (COMMIT_SCHEMA) in. What is older than known changes nothing: twice is as once."""
        with self._lock:
            if len(self._group_ids) >= self._tidy_at:
                self._give_up_deleted()
            rows = np.array([self._row(key) for key in commits["key"].to_pylist()], dtype=np.int64)
            numbers = np.stack([commits[name].to_numpy().astype(np.int64) for name in _NUMBERS])
            for offsets_topic_partition in np.unique(numbers[3]):
                mine = numbers[3] == offsets_topic_partition
                self._apply_of_partition(int(offsets_topic_partition), rows[mine], numbers[:, mine])

    def _apply_of_partition(self, offsets_topic_partition: int, rows: Int64Array, numbers: Int64Array) -> None:
        known = self._numbers[3, rows]
        is_elsewhere = (known != _NOWHERE) & (known != offsets_topic_partition)
        if is_elsewhere.any():
            is_home = np.array([self._homes[row] == offsets_topic_partition for row in rows], dtype=np.bool_)
            moved = np.unique(rows[is_elsewhere & is_home])
            self._windows.clear(moved)
            self._numbers[2:, moved] = [[-1], [_NOWHERE]]
            stays = ~is_elsewhere | is_home
            rows, numbers = rows[stays], numbers[:, stays]
        self._windows.put(rows, *numbers[:3])
        newer = numbers[2] > self._numbers[2, rows]
        # Several commits of a key stand in log order: of a row that is assigned more than once the last stays.
        self._numbers[:, rows[newer]] = numbers[:, newer]

    def use_partitions(self, own_partitions: OwnPartitions) -> None:
        """Go on with these partition counts. A key stays where its commits stand until one stands in its home."""
        with self._lock:
            self._own_partitions = own_partitions
            self._homes = [self._home(group_id) for group_id in self._group_ids]

    def _home(self, group_id: str) -> int:
        home = self._own_partitions.home(group_id)
        return _NOWHERE if home is None else home

    def forget(self, keys: Sequence[bytes], kafka_offsets: Sequence[int]) -> None:
        """Strike out commits that are gone without a record, each unless a later one was written since."""
        with self._lock:
            for key, offsets_topic_offset in zip(keys, kafka_offsets, strict=True):
                row = self._rows.get(key)
                if row is not None and self._numbers[2, row] == offsets_topic_offset:
                    self._numbers[0, row] = TOMBSTONE
                    one = np.array([row], dtype=np.int64)
                    gone, at = np.array([TOMBSTONE]), np.array([offsets_topic_offset])
                    self._windows.put(one, gone, self._numbers[1, one], at)

    def observe(
        self, view: CommittedOffsetsView, next_offsets: Int64Array, end_offsets: Int64Array, is_known: BoolArray
    ) -> Windows | None:
        """Hold the view's commits against end offsets asked for after it, and give the windows up to them.

        A commit's lag counts from the record that is read next, which stands at `next_offsets` (`next_offsets.py`).

        None if rows were numbered anew since the view was taken: the next one will do.
        """
        with self._lock:
            if view.numbering != self._numbering:
                return None
            self._windows.observe(
                view.rows[is_known], view.kafka_offsets[is_known], next_offsets[is_known], end_offsets[is_known]
            )
            return self._windows.as_of(view.rows, view.kafka_offsets)

    def stored_windows(self) -> tuple[int, bytes]:
        """The windows as a version and bytes, by key: more than one commit a key is in no other durable place."""
        with self._lock:
            keys, rows = list(self._rows), np.fromiter(self._rows.values(), np.int64, len(self._rows))
            return encode_windows(pa.array(keys, pa.binary()), self._windows.entries(rows))

    def restore_windows(self, version: int, encoded: bytes) -> None:
        """Put stored windows back, of keys that are known. Raises StateVersionError for an unknown version."""
        keys, entries = decode_windows(version, encoded)
        with self._lock:
            rows = np.array([self._rows.get(key, -1) for key in keys.to_pylist()], dtype=np.int64)
            of_entry = rows[entries["row"].to_numpy()] if len(rows) else np.empty(0, dtype=np.int64)
            known = entries.set_column(0, "row", pa.array(of_entry)).filter(pa.array(of_entry >= 0))
            if known.num_rows:
                self._windows.restore(known)

    def group_ids(self) -> list[str]:
        """Every group that has committed something, sorted."""
        with self._lock:
            return sorted(set(self._group_ids))

    def keyed(self, group_ids: Collection[str]) -> pa.Table:
        """Return the commits of some groups, with key and position.

        A name that is written in several ways (bytes that are not UTF-8) is left out: nobody can ask for it by name.
        """
        wanted, garbled = set(group_ids), set(self._garbled.values())
        with self._lock:
            found = [
                (self._group_ids[row], self._topics[row], self._partitions[row], key, *self._numbers[2:, row].tolist())
                for key, row in self._rows.items()
                if self._group_ids[row] in wanted and row not in garbled and self._numbers[0, row] != TOMBSTONE
            ]
        columns = zip(*found, strict=True) if found else [()] * len(_KEYED_SCHEMA)
        return pa.table([list(column) for column in columns], schema=_KEYED_SCHEMA)

    def view(self) -> CommittedOffsetsView:
        """What is known now, safe from later writes; deleted keys are left out."""
        with self._lock:
            count = len(self._group_ids)
            numbering, kafka_offsets = self._numbering, self._numbers[2, :count].copy()
            columns = {
                "group_id": pa.array(self._group_ids, pa.string()),
                "topic": pa.array(self._topics, pa.string()),
                "partition": pa.array(self._partitions, pa.int32()),
                "committed_offset": pa.array(self._numbers[0, :count].copy()),
                "commit_timestamp_ms": pa.array(self._numbers[1, :count].copy()),
            }
        table = pa.table(columns)
        everything = CommittedOffsetsView(table, np.arange(count), kafka_offsets, numbering)
        return everything.only(columns["committed_offset"].to_numpy() != TOMBSTONE)

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
        self._homes.append(self._home(group_id))
        if row >= self._numbers.shape[1]:
            self._numbers = np.concatenate([self._numbers, _no_numbers(self._numbers.shape[1])], axis=1)
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
            self._homes = [self._homes[row] for row in kept]
            numbers = _no_numbers(max(_FIRST_ROWS, 2 * len(kept)))
            numbers[:, : len(kept)] = self._numbers[:, kept]
            self._windows.keep(kept)
            self._numbering += 1
            self._numbers = numbers
        self._tidy_at = max(_FIRST_ROWS, 2 * len(self._group_ids))


def _no_numbers(rows: int) -> Int64Array:
    """Rows without a commit (_NUMBERS)."""
    numbers = np.full((len(_NUMBERS), rows), -1, dtype=np.int64)
    numbers[3] = _NOWHERE
    return numbers
