"""Store the last commit of every (group, topic, partition), in columns.

For the first commit of a key, the key is decoded and a row is added. Each later commit only changes four numbers in the
row. When more than half of the rows belong to deleted keys, these rows are removed.

All commits of a key are in one partition of `__consumer_offsets`. Offsets of different partitions cannot be compared.
If the partition count of `__consumer_offsets` changes, a group can move to a new home partition
(`combine.own_partitions`). A commit from the home partition replaces a stored commit from a different partition. A
commit is ignored if its partition is neither the home partition nor the partition of the stored commit.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from sys import intern

import numpy as np
import pyarrow as pa

from streaming.combine.big_endian import BoolArray, Int64Array
from streaming.combine.commits import TOMBSTONE
from streaming.combine.own_partitions import OwnPartitions
from streaming.evaluation.lag.stored.commit_windows import CommitWindows, Windows, decode_windows, encode_windows
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
_NO_PARTITION = -2
"""The number for an unknown home partition, and for a row without a commit. It must differ from POLLED_PARTITION."""

_REPLACEMENT = "\ufffd"


@dataclass(frozen=True, slots=True)
class CommittedOffsetsView:
    """A snapshot of CommittedOffsets: the last commit of each partition of each group.

    `commits` is a table with the first five columns of LAG_SCHEMA. `rows` contains the row number of each commit in
    CommittedOffsets. These row numbers are valid until `numbering` changes. `offsets_topic_offsets` contains the offset
    of each commit's record in `__consumer_offsets`.
    """

    commits: pa.Table
    rows: Int64Array
    offsets_topic_offsets: Int64Array
    numbering: int

    def select(self, is_selected: BoolArray) -> CommittedOffsetsView:
        """Return a view of the selected commits."""
        commits = self.commits.filter(pa.array(is_selected))
        return CommittedOffsetsView(
            commits, self.rows[is_selected], self.offsets_topic_offsets[is_selected], self.numbering
        )


@dataclass(slots=True)
class CommittedOffsets:
    """The last commit of each key. One thread writes. Other threads read views."""

    _own_partitions: OwnPartitions = field(default_factory=OwnPartitions)
    _rows: dict[bytes, int] = field(default_factory=dict)
    _row_by_invalid_name: dict[tuple[str, str, int], int] = field(default_factory=dict)
    _group_ids: list[str] = field(default_factory=list)
    _topics: list[str] = field(default_factory=list)
    _partitions: list[int] = field(default_factory=list)
    _homes: list[int] = field(default_factory=list)
    _numbers: Int64Array = field(default_factory=lambda: _empty_numbers(_FIRST_ROWS))
    _windows: CommitWindows = field(default_factory=CommitWindows)
    _numbering: int = 0
    _compact_at_rows: int = _FIRST_ROWS
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def apply(self, commits: pa.Table) -> None:
        """Store reduced commits (COMMIT_SCHEMA). Older commits have no effect, so it is safe to apply a batch twice."""
        with self._lock:
            if len(self._group_ids) >= self._compact_at_rows:
                self._drop_deleted_rows()
            keys = commits["key"].combine_chunks().dictionary_encode()  # a batch can contain a key several times
            row_of_key = np.array([self._find_row(key) for key in keys.dictionary.to_pylist()], dtype=np.int64)
            rows = row_of_key[keys.indices.to_numpy()]
            numbers = np.stack([commits[name].to_numpy().astype(np.int64) for name in _NUMBERS])
            for offsets_topic_partition in np.unique(numbers[3]):
                is_of_partition = numbers[3] == offsets_topic_partition
                self._apply_of_partition(
                    int(offsets_topic_partition), rows[is_of_partition], numbers[:, is_of_partition]
                )

    def _apply_of_partition(self, offsets_topic_partition: int, rows: Int64Array, numbers: Int64Array) -> None:
        known = self._numbers[3, rows]
        is_elsewhere = (known != _NO_PARTITION) & (known != offsets_topic_partition)
        if is_elsewhere.any():
            is_home = np.array([self._homes[row] == offsets_topic_partition for row in rows], dtype=np.bool_)
            moved = np.unique(rows[is_elsewhere & is_home])
            self._windows.clear(moved)
            self._numbers[2:, moved] = [[-1], [_NO_PARTITION]]
            is_accepted = ~is_elsewhere | is_home
            rows, numbers = rows[is_accepted], numbers[:, is_accepted]
        self._windows.put(rows, *numbers[:3])
        newer = numbers[2] > self._numbers[2, rows]
        # The commits of a key are in log order. If NumPy assigns a row more than once, the last value remains.
        self._numbers[:, rows[newer]] = numbers[:, newer]

    def use_partitions(self, own_partitions: OwnPartitions) -> None:
        """Replace the partition counts that define the home partitions.

        A key moves to its new home partition when its first commit arrives there.
        """
        with self._lock:
            self._own_partitions = own_partitions
            self._homes = [self._home(group_id) for group_id in self._group_ids]

    def _home(self, group_id: str) -> int:
        home = self._own_partitions.home(group_id)
        return _NO_PARTITION if home is None else home

    def forget(self, keys: Sequence[bytes], offsets_topic_offsets: Sequence[int]) -> None:
        """Delete commits whose tombstones were not read.

        A commit is deleted only if its stored record has the given offset.
        """
        with self._lock:
            for key, offsets_topic_offset in zip(keys, offsets_topic_offsets, strict=True):
                row = self._rows.get(key)
                if row is not None and self._numbers[2, row] == offsets_topic_offset:
                    self._numbers[0, row] = TOMBSTONE
                    rows = np.array([row], dtype=np.int64)
                    tombstones, offsets = np.array([TOMBSTONE]), np.array([offsets_topic_offset])
                    self._windows.put(rows, tombstones, self._numbers[1, rows], offsets)

    def observe(
        self, view: CommittedOffsetsView, next_offsets: Int64Array, end_offsets: Int64Array, is_known: BoolArray
    ) -> Windows | None:
        """Compare the commits of the view with end offsets that were sampled after the view. Return the commit windows.

        Each window ends with the commit in the view. The lag is counted from `next_offsets`: the offsets of the records
        that the groups read next (`next_offsets.py`). If the view's row numbers are not valid any more, return None.
        """
        with self._lock:
            if view.numbering != self._numbering:
                return None
            self._windows.observe(
                view.rows[is_known], view.offsets_topic_offsets[is_known], next_offsets[is_known], end_offsets[is_known]
            )
            return self._windows.as_of(view.rows, view.offsets_topic_offsets)

    def restart_windows(self, view: CommittedOffsetsView) -> None:
        """Start new commit windows with the commits of the view, because their topics were created again."""
        with self._lock:
            if view.numbering == self._numbering:
                self._windows.restart(view.rows, view.offsets_topic_offsets)

    def stored_windows(self) -> tuple[int, bytes]:
        """Return the format version and the encoded commit windows. The state store does not have the windows."""
        with self._lock:
            keys, rows = list(self._rows), np.fromiter(self._rows.values(), np.int64, len(self._rows))
            return encode_windows(pa.array(keys, pa.binary()), self._windows.entries(rows))

    def restore_windows(self, version: int, encoded: bytes) -> None:
        """Restore the stored commit windows of known keys. Raises StateVersionError for an unknown version."""
        keys, entries = decode_windows(version, encoded)
        with self._lock:
            rows = np.array([self._rows.get(key, -1) for key in keys.to_pylist()], dtype=np.int64)
            row_of_entry = rows[entries["row"].to_numpy()] if len(rows) else np.empty(0, dtype=np.int64)
            known = entries.set_column(0, "row", pa.array(row_of_entry)).filter(pa.array(row_of_entry >= 0))
            if known.num_rows:
                self._windows.restore(known)

    def group_ids(self) -> list[str]:
        """Return the sorted ids of all groups that have committed an offset."""
        with self._lock:
            return sorted(set(self._group_ids))

    def commits_of_groups(self, group_ids: Collection[str]) -> pa.Table:
        """Return the commits of the given groups, with the key of each commit and the position of its record.

        Omit names that are not valid UTF-8, because requests cannot contain them.
        """
        selected = set(group_ids)
        with self._lock:
            rows_of_invalid_names = set(self._row_by_invalid_name.values())
            commits = [
                (self._group_ids[row], self._topics[row], self._partitions[row], key, *self._numbers[2:, row].tolist())
                for key, row in self._rows.items()
                if self._group_ids[row] in selected
                and row not in rows_of_invalid_names
                and self._numbers[0, row] != TOMBSTONE
            ]
        columns = zip(*commits, strict=True) if commits else [()] * len(_KEYED_SCHEMA)
        return pa.table([list(column) for column in columns], schema=_KEYED_SCHEMA)

    def view(self) -> CommittedOffsetsView:
        """Return a copy of the commits, without deleted keys."""
        with self._lock:
            count = len(self._group_ids)
            numbering, offsets_topic_offsets = self._numbering, self._numbers[2, :count].copy()
            columns = {
                "group_id": pa.array(self._group_ids, pa.string()),
                "topic": pa.array(self._topics, pa.string()),
                "partition": pa.array(self._partitions, pa.int32()),
                "committed_offset": pa.array(self._numbers[0, :count].copy()),
                "commit_timestamp_ms": pa.array(self._numbers[1, :count].copy()),
            }
        table = pa.table(columns)
        everything = CommittedOffsetsView(table, np.arange(count), offsets_topic_offsets, numbering)
        return everything.select(columns["committed_offset"].to_numpy() != TOMBSTONE)

    def _find_row(self, key: bytes) -> int:
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._add_row_of_key(key)
        return row

    def _add_row_of_key(self, key: bytes) -> int:
        """Return the row number for a new key.

        Invalid UTF-8 is decoded as Java decodes it. So several keys can have the same name, and share one row. With
        separate rows, `/metrics` would have two series with the same labels, and the scrape would fail.
        """
        fields = decode(key, None).key
        group_id, topic, partition = fields["group"], fields["topic"], fields["partition"]
        if _REPLACEMENT in group_id or _REPLACEMENT in topic:
            name = (group_id, topic, partition)
            if name not in self._row_by_invalid_name:
                self._row_by_invalid_name[name] = self._add_row(*name)
            return self._row_by_invalid_name[name]
        return self._add_row(group_id, topic, partition)

    def _add_row(self, group_id: str, topic: str, partition: int) -> int:
        row = len(self._group_ids)
        self._group_ids.append(intern(group_id))  # many keys contain the same name
        self._topics.append(intern(topic))
        self._partitions.append(partition)
        self._homes.append(self._home(group_id))
        if row >= self._numbers.shape[1]:
            self._numbers = np.concatenate([self._numbers, _empty_numbers(self._numbers.shape[1])], axis=1)
        return row

    def _drop_deleted_rows(self) -> None:
        """Remove the rows of deleted keys if they are more than half of all rows.

        Try again when the number of rows has doubled.
        """
        count = len(self._group_ids)
        kept = np.flatnonzero(self._numbers[0, :count] != TOMBSTONE)
        if 2 * len(kept) < count:
            row_after = dict(zip(kept.tolist(), range(len(kept)), strict=True))
            self._rows = {key: row_after[row] for key, row in self._rows.items() if row in row_after}
            self._row_by_invalid_name = {
                name: row_after[row] for name, row in self._row_by_invalid_name.items() if row in row_after
            }
            self._group_ids = [self._group_ids[row] for row in kept]
            self._topics = [self._topics[row] for row in kept]
            self._partitions = [self._partitions[row] for row in kept]
            self._homes = [self._homes[row] for row in kept]
            numbers = _empty_numbers(max(_FIRST_ROWS, 2 * len(kept)))
            numbers[:, : len(kept)] = self._numbers[:, kept]
            self._windows.keep(kept)
            self._numbering += 1
            self._numbers = numbers
        self._compact_at_rows = max(_FIRST_ROWS, 2 * len(self._group_ids))


def _empty_numbers(rows: int) -> Int64Array:
    numbers = np.full((len(_NUMBERS), rows), -1, dtype=np.int64)
    numbers[3] = _NO_PARTITION
    return numbers
