"""Store the last commits of every group partition. The status rules (`status.py`) evaluate these windows.

A window has up to `length` entries, oldest first. An entry is {committed offset, timestamp, log offset of the
commit's record, lag at observation or none}. Rules for one commit:

1. A tombstone removes all earlier entries. After that, a commit from before the tombstone is not added.
2. Entries are in the order of the log. A commit that is read late is inserted at its place. A commit that is already
   known changes nothing. A commit that is older than all entries of a full window changes nothing either.
3. Each slot of `slot_ms` has one entry: the slot's last commit. This gives a window a useful length, even for a group
   that commits every 10 ms. The clock can go back if the coordinator moves to a broker whose clock is behind. If a slot
   repeats because of this, the new commit replaces the slot's earlier entry. The number of a slot is timestamp //
   slot_ms. So a window depends only on the commits, and not on batches or restarts. From a batch, only the last commit
   of each slot is needed (`last_per_slot`). Burrow's `min-distance` counts from the previous entry instead.
4. If a window is full, a new commit removes the oldest entry.

Rules for an end offset that was requested after a commit was read:

5. The commit's entry gets its lag once, at the first observation of its slot. Burrow uses the end offset that it knew
   *before* the commit. So Burrow understates the lag, often to 0, and a lag of 0 clears every alert. Here, only the
   newest commit gets a lag. If one end offset measured several commits, the lag would seem to shrink.
6. If the committed offset of an entry is beyond the end offset, there are two possible causes. The topic was deleted
   and created again, or a client committed an offset that never existed. The entry and all earlier entries are removed.

Source: Burrow, `core/internal/storage/inmemory.go`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.combine.commits import SLOT_MS, TOMBSTONE, WINDOW_COMMITS, clipped_times
from streaming.combine.wire import BoolArray, Int64Array
from streaming.evaluation.lag.stored import decode_columns, encode_columns

_FIRST_ROWS = 1024
_NONE = -1
"""Means that there is no entry, or that its lag was not observed.

The value is used only in the matrices, in which offsets are never negative.
"""

WINDOW_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("committed_offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("offsets_topic_offset", pa.int64()),
        ("lag", pa.int64()),
    ]
)
"""One entry per row. The entries of a window are adjacent, oldest first. `lag` is null if it was not observed."""

STORED_VERSION = 1
"""Version 1: WINDOW_SCHEMA, but with a dictionary column instead of `row`.

This column contains the canonical key of the commits' records.
"""


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows as matrices, one row per window.

    A cell contains an entry if `is_entry` is True. The entries of a row are adjacent, oldest first. `lag` is valid only
    where `has_lag` is True.
    """

    committed_offset: Int64Array
    timestamp_ms: Int64Array
    lag: Int64Array
    is_entry: BoolArray
    has_lag: BoolArray


class CommitWindows:
    """Windows for a growing number of rows. The caller numbers the rows.

    Each row has space for `length` entries of 32 bytes.

    >>> windows = CommitWindows(length=3, slot_ms=1000)
    >>> offsets, timestamps = np.array([5, 7, 9]), np.array([1_000, 2_000, 2_900])
    >>> windows.put(np.zeros(3, np.int64), offsets, timestamps, log_offsets=np.array([1, 2, 3]))
    >>> windows.observe(np.array([0]), np.array([3]), next_offsets=np.array([9]), end_offsets=np.array([12]))
    >>> windows.entries(np.array([0])).to_pydict()["committed_offset"]
    [5, 9]
    >>> windows.entries(np.array([0])).to_pydict()["lag"]
    [None, 3]
    """

    def __init__(self, length: int = WINDOW_COMMITS, slot_ms: int = SLOT_MS) -> None:
        if length < 2:
            raise ValueError("a window needs at least two commits, because the status rules compare them")
        self.length = length
        self._slot_ms = slot_ms
        self._tombstoned_at: Int64Array = np.full(_FIRST_ROWS, _NONE, dtype=np.int64)
        # By column name. Entries are aligned to the right, so the newest is last.
        self._matrices: dict[str, Int64Array] = {
            name: np.full((_FIRST_ROWS, length), _NONE, dtype=np.int64) for name in WINDOW_SCHEMA.names[1:]
        }

    def put(
        self, rows: Int64Array, committed_offsets: Int64Array, timestamps_ms: Int64Array, log_offsets: Int64Array
    ) -> None:
        """Add commits, also several to one row. A committed offset of TOMBSTONE means that the key was deleted."""
        if not len(rows):
            return
        self._grow(int(rows.max()) + 1)
        in_order = np.lexsort((log_offsets, rows))
        first_of_row = np.flatnonzero(np.diff(rows[in_order], prepend=-1))
        nth_of_row = np.arange(len(rows)) - np.repeat(first_of_row, np.diff(first_of_row, append=len(rows)))
        timestamps_ms = clipped_times(timestamps_ms)
        for nth in range(int(nth_of_row.max()) + 1):
            at = in_order[nth_of_row == nth]
            is_tombstone = committed_offsets[at] == TOMBSTONE
            self._end_windows(rows[at[is_tombstone]], log_offsets[at[is_tombstone]])
            at = at[~is_tombstone]
            self._put_one(rows[at], committed_offsets[at], timestamps_ms[at], log_offsets[at])

    def observe(
        self, rows: Int64Array, log_offsets: Int64Array, next_offsets: Int64Array, end_offsets: Int64Array
    ) -> None:
        """Apply rules 5 and 6 to distinct rows.

        `log_offsets` are the log offsets of each row's newest commit at the time of the request for end offsets. Lag is
        counted from `next_offsets`: the offset of that commit, or of the first record after it. Later commits are not
        changed, because their offsets may be beyond these end offsets.
        """
        if not len(rows):
            return
        lags = end_offsets - next_offsets
        orders = self._matrices["offsets_topic_offset"][rows]
        is_beyond = self._matrices["committed_offset"][rows] > end_offsets[:, np.newaxis]
        is_beyond &= orders < log_offsets[:, np.newaxis]
        last_beyond = np.where(is_beyond, orders, _NONE).max(axis=1)
        self._drop(rows, np.where(lags < 0, log_offsets, last_beyond))
        place = np.minimum(self._place_of(self._matrices["offsets_topic_offset"][rows], log_offsets), self.length - 1)
        is_seen_first = self._matrices["lag"][rows, place] == _NONE
        is_seen_first &= (self._matrices["offsets_topic_offset"][rows, place] >= log_offsets) & (lags >= 0)
        self._matrices["lag"][rows[is_seen_first], place[is_seen_first]] = lags[is_seen_first]

    def as_of(self, rows: Int64Array, log_offsets: Int64Array) -> Windows:
        """Return a copy of the windows up to one commit of each row."""
        orders = self._matrices["offsets_topic_offset"][rows]
        last = self._place_of(orders, log_offsets)
        is_entry = (orders != _NONE) & (np.arange(self.length) <= last[:, np.newaxis])
        lags = self._matrices["lag"][rows]
        committed, timestamps = self._matrices["committed_offset"][rows], self._matrices["timestamp_ms"][rows]
        return Windows(committed, timestamps, lags, is_entry, is_entry & (lags != _NONE))

    def entries(self, rows: Int64Array) -> pa.Table:
        """Return the entries of some rows for storage (WINDOW_SCHEMA).

        In the result, rows are numbered from 0 in the given order.
        """
        is_entry = self._matrices["offsets_topic_offset"][rows] != _NONE
        columns = [pa.array(np.repeat(np.arange(len(rows)), is_entry.sum(axis=1)))]
        columns += [pa.array(self._matrices[name][rows][is_entry]) for name in WINDOW_SCHEMA.names[1:-1]]
        lags = self._matrices["lag"][rows][is_entry]
        return pa.table([*columns, pa.array(lags, mask=lags == _NONE)], schema=WINDOW_SCHEMA)

    def restore(self, entries: pa.Table) -> None:
        """Add stored entries (WINDOW_SCHEMA) with their lags. Entries that are already known do not change."""
        rows, committed, timestamps, log_offsets = (entries[name].to_numpy() for name in WINDOW_SCHEMA.names[:-1])
        self.put(rows, committed, timestamps, log_offsets)
        lags = entries["lag"].fill_null(_NONE).to_numpy()
        place = np.argmax(self._matrices["offsets_topic_offset"][rows] == log_offsets[:, np.newaxis], axis=1)
        unseen = self._matrices["offsets_topic_offset"][rows, place] == log_offsets
        unseen &= self._matrices["lag"][rows, place] == _NONE
        self._matrices["lag"][rows[unseen], place[unseen]] = lags[unseen]

    def clear(self, rows: Int64Array) -> None:
        """Empty some windows. Their next commits are in a different log with different offsets."""
        if len(rows):
            self._grow(int(rows.max()) + 1)
            self._tombstoned_at[rows] = _NONE
            for matrix in self._matrices.values():
                matrix[rows] = _NONE

    def keep(self, rows: Int64Array) -> None:
        """Remove all other rows, and number the given rows again in the given order."""
        self._grow(int(rows.max(initial=-1)) + 1)
        self._tombstoned_at = self._tombstoned_at[rows]
        self._matrices = {name: matrix[rows] for name, matrix in self._matrices.items()}

    def _grow(self, rows: int) -> None:
        missing = rows - len(self._tombstoned_at)
        if missing > 0:
            more = max(missing, len(self._tombstoned_at))
            blank = np.full((more, self.length), _NONE, dtype=np.int64)
            self._tombstoned_at = np.concatenate([self._tombstoned_at, blank[:, 0]])
            self._matrices = {name: np.concatenate([matrix, blank]) for name, matrix in self._matrices.items()}

    def _place_of(self, orders: Int64Array, log_offsets: Int64Array) -> Int64Array:
        """Return the place of a commit's entry.

        If a later commit of the slot has replaced the entry, return the place of that later commit.
        """
        place: Int64Array = (orders < log_offsets[:, np.newaxis]).sum(axis=1)
        return place

    def _end_windows(self, rows: Int64Array, log_offsets: Int64Array) -> None:
        self._tombstoned_at[rows] = np.maximum(self._tombstoned_at[rows], log_offsets)
        self._drop(rows, log_offsets)

    def _drop(self, rows: Int64Array, up_to_log_offsets: Int64Array) -> None:
        """Remove the entries up to a log offset.

        These are the leftmost entries, so the remaining entries stay aligned.
        """
        is_gone = self._matrices["offsets_topic_offset"][rows] <= up_to_log_offsets[:, np.newaxis]
        for matrix in self._matrices.values():
            matrix[rows] = np.where(is_gone, _NONE, matrix[rows])

    def _put_one(
        self, rows: Int64Array, committed_offsets: Int64Array, timestamps_ms: Int64Array, log_offsets: Int64Array
    ) -> None:
        """Add at most one commit per row."""
        orders = self._matrices["offsets_topic_offset"][rows]
        before = self._place_of(orders, log_offsets) - 1
        shares_slot = self._shares_slot(rows, timestamps_ms)
        is_later = orders >= log_offsets[:, np.newaxis]
        is_known = ((shares_slot & is_later) | (orders == log_offsets[:, np.newaxis])).any(axis=1)
        taken = (before >= 0) & ~is_known & (log_offsets > self._tombstoned_at[rows])
        # The removed entry is the slot's earlier one, at any earlier place, or otherwise the oldest.
        rows, place, is_earlier = rows[taken], before[taken], (shares_slot & ~is_later)[taken]
        removed = np.argmax(is_earlier, axis=1)
        # If the removed entry is at this place, nothing moves. The lag stays, because the slot was already observed.
        moves = ~np.take_along_axis(is_earlier, place[:, np.newaxis], axis=1)[:, 0]
        self._make_room(rows[moves], removed[moves], place[moves])
        self._matrices["committed_offset"][rows, place] = committed_offsets[taken]
        self._matrices["timestamp_ms"][rows, place] = timestamps_ms[taken]
        self._matrices["offsets_topic_offset"][rows, place] = log_offsets[taken]

    def _shares_slot(self, rows: Int64Array, timestamps_ms: Int64Array) -> BoolArray:
        """Return True for each entry that is in the slot of its row's time."""
        is_entry = self._matrices["offsets_topic_offset"][rows] != _NONE
        slots = self._matrices["timestamp_ms"][rows] // self._slot_ms
        shares: BoolArray = is_entry & (slots == (timestamps_ms // self._slot_ms)[:, np.newaxis])
        return shares

    def _make_room(self, rows: Int64Array, removed: Int64Array, place: Int64Array) -> None:
        """Move the entries between the removed one and `place` one to the left. The place then has no lag."""
        columns = np.arange(self.length)
        is_moved = (columns >= removed[:, np.newaxis]) & (columns < place[:, np.newaxis])
        source = np.minimum(columns + is_moved, self.length - 1)
        for matrix in self._matrices.values():
            matrix[rows] = np.take_along_axis(matrix[rows], source, axis=1)
        self._matrices["lag"][rows, place] = _NONE


def encode_windows(keys: pa.Array, entries: pa.Table) -> tuple[int, bytes]:
    """Return the version and the bytes of entries (WINDOW_SCHEMA). `keys[i]` is the key of row i."""
    named = pa.DictionaryArray.from_arrays(entries["row"].combine_chunks().cast(pa.int32()), keys)
    return STORED_VERSION, encode_columns(entries.set_column(0, "key", named))


def decode_windows(version: int, encoded: bytes) -> tuple[pa.Array, pa.Table]:
    """Return the keys and entries of `encode_windows`. Raises StateVersionError if the version is unknown."""
    stored = decode_columns(version, encoded, STORED_VERSION)
    if not stored.num_rows:
        return pa.array([], pa.binary()), WINDOW_SCHEMA.empty_table()
    named = stored["key"].combine_chunks()
    return named.dictionary, stored.set_column(0, "row", named.indices.cast(pa.int64()))
