"""Store the last commits of each group for each partition. `status.py` evaluates the windows of commits.

A window has up to `length` entries, oldest first. An entry has four values: the committed offset, the timestamp, the
log offset of the commit's record, and the lag. The lag is missing until `observe` computes it (rule 5). Rules for one
commit:

1. A tombstone removes all earlier entries. A commit from before the tombstone is not added, even if it is read after
   the tombstone.
2. Entries are in the order of the log. A commit that is read late is inserted in log order. A commit that is already in
   the window is ignored. If a window is full, a commit that is older than all entries of the window is also ignored.
3. Time is divided into slots of `slot_ms`. A window contains only the last commit of each slot. So a window covers
   enough time, even if a group commits every 10 ms. If the coordinator moves to a broker whose clock is slow,
   timestamps can decrease. If the timestamps return to an earlier slot, the new commit replaces the entry of that slot.
   The number of a slot is timestamp // slot_ms. So the content of a window depends only on the commits, and not on
   batches or restarts. Therefore, it is sufficient to add only the last commit of each slot from each batch
   (`last_per_slot`). Burrow does not use slots: its `min-distance` is a minimum time after the previous entry.
4. If a window is full, a new commit removes the oldest entry.

The monitor requests end offsets after it has read the commits. Rules for the end offsets:

5. The lag of an entry is computed once, from the first end offset that is sampled after the commit. If a later commit
   of the same slot replaces the entry, the new entry has the same lag. Burrow uses the last end offset *before* the
   commit. So Burrow's lag is too low and often 0, and alerts resolve too early. An end offset is used only for the
   newest commit of a row. If several commits had the same end offset, each later commit would have a lower lag than the
   previous commit, even if the group does not catch up.
6. If a committed offset is greater than the end offset, the entry and all earlier entries are removed. There are two
   possible causes. The topic was deleted and created again, or a client committed an offset that never existed.
7. If the topic id shows that the topic was created again (`topic_ids.py`), all entries before the last commit are
   removed. The lag of the last commit is computed again.

Source: Burrow, `core/internal/storage/inmemory.go`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streaming.combine.big_endian import BoolArray, Int64Array
from streaming.combine.commits import SLOT_MS, TOMBSTONE, WINDOW_COMMITS, clipped_times
from streaming.evaluation.lag.stored.columns import decode_columns, encode_columns

_FIRST_ROWS = 1024
_NONE = -1
"""The value of a cell without an entry, and of a lag that was not observed. All other values are 0 or greater."""

WINDOW_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("committed_offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("offsets_topic_offset", pa.int64()),
        ("lag", pa.int64()),
    ]
)
"""One entry per row. The entries of a window are in adjacent rows, oldest first. `lag` is null if not observed."""

STORED_VERSION = 1
"""Version 1: WINDOW_SCHEMA with the column `key` instead of `row`. `key` contains the bytes of the commit's key."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows as matrices, one row per window. The entries of a row are in adjacent cells, oldest first.

    A cell is valid only where `is_entry` is True, and its `lag` only where `has_lag` is also True.
    """

    committed_offset: Int64Array
    timestamp_ms: Int64Array
    lag: Int64Array
    is_entry: BoolArray
    has_lag: BoolArray

    def moved(self, ms: Int64Array) -> Windows:
        """Return windows with other times: all times of a window change by the same number of milliseconds."""
        return replace(self, timestamp_ms=self.timestamp_ms + ms[:, np.newaxis]) if ms.any() else self


class _Commits(NamedTuple):
    """Commits as columns, sorted by row and log offset."""

    rows: Int64Array
    committed_offsets: Int64Array
    timestamps_ms: Int64Array
    log_offsets: Int64Array

    @property
    def starts(self) -> Int64Array:
        """The index of the first commit of each row."""
        return np.flatnonzero(np.diff(self.rows, prepend=_NONE))

    @property
    def counts(self) -> Int64Array:
        """The number of commits of each row."""
        return np.diff(self.starts, append=len(self.rows))

    def select(self, is_selected: BoolArray) -> _Commits:
        """Return the commits that the mask selects."""
        return _Commits(*(column[is_selected] for column in self))


class CommitWindows:
    """Stores one window per row. The caller assigns the row numbers. The number of rows can grow.

    Each row has space for `length` entries. An entry needs 32 bytes.

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
        """Add commits, several per row if necessary. The committed offset of a tombstone is TOMBSTONE."""
        if not len(rows):
            return
        self._grow(int(rows.max()) + 1)
        in_order = np.lexsort((log_offsets, rows))
        columns = (rows, committed_offsets, clipped_times(timestamps_ms), log_offsets)
        commits = _Commits(*(column[in_order] for column in columns))
        is_newer = self._extends_window(commits)
        self._append(commits.select(is_newer))
        self._put_one_by_one(commits.select(~is_newer))

    def observe(
        self, rows: Int64Array, log_offsets: Int64Array, next_offsets: Int64Array, end_offsets: Int64Array
    ) -> None:
        """Apply rules 5 and 6. Each row occurs at most once in `rows`.

        `log_offsets` contains for each row the log offset of the newest commit that the monitor had read when it
        requested the end offsets. Entries of later commits do not change, because `end_offsets` may be older than these
        commits. Lag is counted from `next_offsets` (`next_offsets.py`).
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
        """Return a copy of the windows. Each window ends with the commit at the given log offset."""
        orders = self._matrices["offsets_topic_offset"][rows]
        last = self._place_of(orders, log_offsets)
        is_entry = (orders != _NONE) & (np.arange(self.length) <= last[:, np.newaxis])
        lags = self._matrices["lag"][rows]
        committed, timestamps = self._matrices["committed_offset"][rows], self._matrices["timestamp_ms"][rows]
        return Windows(committed, timestamps, lags, is_entry, is_entry & (lags != _NONE))

    def entries(self, rows: Int64Array) -> pa.Table:
        """Return the entries of the given rows for storage (WINDOW_SCHEMA). The rows get new numbers, from 0."""
        is_entry = self._matrices["offsets_topic_offset"][rows] != _NONE
        columns = [pa.array(np.repeat(np.arange(len(rows)), is_entry.sum(axis=1)))]
        columns += [pa.array(self._matrices[name][rows][is_entry]) for name in WINDOW_SCHEMA.names[1:-1]]
        lags = self._matrices["lag"][rows][is_entry]
        return pa.table([*columns, pa.array(lags, mask=lags == _NONE)], schema=WINDOW_SCHEMA)

    def restore(self, entries: pa.Table) -> None:
        """Add stored entries (WINDOW_SCHEMA) with their lags. Entries that already exist do not change."""
        rows, committed, timestamps, log_offsets = (entries[name].to_numpy() for name in WINDOW_SCHEMA.names[:-1])
        self.put(rows, committed, timestamps, log_offsets)
        lags = entries["lag"].fill_null(_NONE).to_numpy()
        place = np.argmax(self._matrices["offsets_topic_offset"][rows] == log_offsets[:, np.newaxis], axis=1)
        unseen = self._matrices["offsets_topic_offset"][rows, place] == log_offsets
        unseen &= self._matrices["lag"][rows, place] == _NONE
        self._matrices["lag"][rows[unseen], place[unseen]] = lags[unseen]

    def clear(self, rows: Int64Array) -> None:
        """Remove all entries of the given rows. The next commits of these rows are in a different log."""
        if len(rows):
            self._grow(int(rows.max()) + 1)
            self._tombstoned_at[rows] = _NONE
            for matrix in self._matrices.values():
                matrix[rows] = _NONE

    def restart(self, rows: Int64Array, log_offsets: Int64Array) -> None:
        """Apply rule 7. `log_offsets` contains the log offset of the last commit of each row."""
        self._drop(rows, log_offsets - 1)
        self._matrices["lag"][rows] = _NONE

    def keep(self, rows: Int64Array) -> None:
        """Keep only the given rows. The new row numbers are 0, 1, 2, ... in the given order."""
        self._grow(int(rows.max(initial=-1)) + 1)
        self._tombstoned_at = self._tombstoned_at[rows]
        self._matrices = {name: matrix[rows] for name, matrix in self._matrices.items()}

    def _grow(self, rows: int) -> None:
        missing = rows - len(self._tombstoned_at)
        if missing > 0:
            more = max(missing, len(self._tombstoned_at) // 4)
            blank = np.full((more, self.length), _NONE, dtype=np.int64)
            self._tombstoned_at = np.concatenate([self._tombstoned_at, blank[:, 0]])
            for name, matrix in self._matrices.items():  # one at a time, so that only one matrix exists twice
                self._matrices[name] = np.concatenate([matrix, blank])

    def _place_of(self, orders: Int64Array, log_offsets: Int64Array) -> Int64Array:
        """Return for each log offset the column of its entry, or of the entry that has replaced it in the same slot."""
        place: Int64Array = (orders < log_offsets[:, np.newaxis]).sum(axis=1)
        return place

    def _drop(self, rows: Int64Array, up_to_log_offsets: Int64Array) -> None:
        """Remove entries up to a log offset. Old entries are on the left, so the remaining entries stay adjacent."""
        is_gone = self._matrices["offsets_topic_offset"][rows] <= up_to_log_offsets[:, np.newaxis]
        for matrix in self._matrices.values():
            matrix[rows] = np.where(is_gone, _NONE, matrix[rows])

    def _extends_window(self, commits: _Commits) -> BoolArray:
        """Return True for each commit of a row if `_append` can add all commits of the row in one step.

        This is possible if log offsets increase, slots do not decrease, and no commit is a tombstone.
        """
        starts = commits.starts
        matrix_rows = commits.rows[starts]
        known_orders = self._matrices["offsets_topic_offset"][matrix_rows]
        known_slots = self._matrices["timestamp_ms"][matrix_rows] // self._slot_ms
        known_slots = np.where(known_orders == _NONE, _NONE, known_slots)
        slots = commits.timestamps_ms // self._slot_ms
        before_order = np.concatenate([[_NONE], commits.log_offsets[:-1]])
        before_slot = np.concatenate([[_NONE], slots[:-1]])
        before_order[starts] = np.maximum(known_orders[:, -1], self._tombstoned_at[matrix_rows])
        before_slot[starts] = known_slots[:, -1]
        extends = (commits.log_offsets > before_order) & (slots >= before_slot)
        extends &= commits.committed_offsets != TOMBSTONE
        extends[starts] &= known_slots[:, -1] == known_slots.max(axis=1)  # if False, a commit may return to a slot
        of_rows: BoolArray = np.logical_and.reduceat(extends, starts)
        return np.repeat(of_rows, commits.counts)

    def _append(self, commits: _Commits) -> None:
        if not len(commits.rows):
            return
        slots = commits.timestamps_ms // self._slot_ms
        is_last_of_slot = (np.diff(slots, append=_NONE) != 0) | (np.diff(commits.rows, append=_NONE) != 0)
        commits, slots = commits.select(is_last_of_slot), slots[is_last_of_slot]
        rows, starts, counts = commits.rows[commits.starts], commits.starts, commits.counts
        newest_order = self._matrices["offsets_topic_offset"][rows, -1]
        newest_slot = self._matrices["timestamp_ms"][rows, -1] // self._slot_ms
        replaces_newest = (newest_order != _NONE) & (newest_slot == slots[starts])
        shift = np.minimum(counts - replaces_newest, self.length)
        is_moved = (newest_order != _NONE) & (shift > 0)
        source = np.minimum(np.arange(self.length) + shift[is_moved, np.newaxis], self.length - 1)
        for matrix in self._matrices.values():
            matrix[rows[is_moved]] = np.take_along_axis(matrix[rows[is_moved]], source, axis=1)
        # The newest commit of each row is in the last column.
        place = self.length - np.repeat(starts + counts, counts) + np.arange(len(commits.rows))
        has_place = place >= 0
        added, place = commits.select(has_place), place[has_place]
        self._matrices["committed_offset"][added.rows, place] = added.committed_offsets
        self._matrices["timestamp_ms"][added.rows, place] = added.timestamps_ms
        self._matrices["offsets_topic_offset"][added.rows, place] = added.log_offsets
        has_new_slot = np.ones(len(commits.rows), dtype=np.bool_)
        has_new_slot[starts] = ~replaces_newest  # if False, the lag stays, because the slot was already observed
        has_new_slot = has_new_slot[has_place]
        self._matrices["lag"][added.rows[has_new_slot], place[has_new_slot]] = _NONE

    def _put_one_by_one(self, commits: _Commits) -> None:
        """Add the first commit of each row, then the second commit of each row, and so on."""
        if not len(commits.rows):
            return
        nth_of_row = np.arange(len(commits.rows)) - np.repeat(commits.starts, commits.counts)
        for nth in range(int(nth_of_row.max()) + 1):
            now = commits.select(nth_of_row == nth)
            is_tombstone = now.committed_offsets == TOMBSTONE
            ended, log_offsets = now.rows[is_tombstone], now.log_offsets[is_tombstone]
            self._tombstoned_at[ended] = np.maximum(self._tombstoned_at[ended], log_offsets)
            self._drop(ended, log_offsets)
            self._put_one(*now.select(~is_tombstone))

    def _put_one(
        self, rows: Int64Array, committed_offsets: Int64Array, timestamps_ms: Int64Array, log_offsets: Int64Array
    ) -> None:
        """Add at most one commit per row."""
        orders = self._matrices["offsets_topic_offset"][rows]
        before = self._place_of(orders, log_offsets) - 1
        slots = self._matrices["timestamp_ms"][rows] // self._slot_ms
        shares_slot = (orders != _NONE) & (slots == (timestamps_ms // self._slot_ms)[:, np.newaxis])
        is_later = orders >= log_offsets[:, np.newaxis]
        is_known = ((shares_slot & is_later) | (orders == log_offsets[:, np.newaxis])).any(axis=1)
        taken = (before >= 0) & ~is_known & (log_offsets > self._tombstoned_at[rows])
        # The removed entry is the earlier entry of the same slot. Without such an entry, the oldest entry is removed.
        rows, place, is_earlier = rows[taken], before[taken], (shares_slot & ~is_later)[taken]
        removed = np.argmax(is_earlier, axis=1)
        # If the removed entry is at this place, nothing moves. The lag stays, because the slot was already observed.
        moves = ~np.take_along_axis(is_earlier, place[:, np.newaxis], axis=1)[:, 0]
        self._make_room(rows[moves], removed[moves], place[moves])
        self._matrices["committed_offset"][rows, place] = committed_offsets[taken]
        self._matrices["timestamp_ms"][rows, place] = timestamps_ms[taken]
        self._matrices["offsets_topic_offset"][rows, place] = log_offsets[taken]

    def _make_room(self, rows: Int64Array, removed: Int64Array, place: Int64Array) -> None:
        """Move the entries one column to the left: columns `removed` + 1 up to `place`. Remove the lag at `place`."""
        columns = np.arange(self.length)
        is_moved = (columns >= removed[:, np.newaxis]) & (columns < place[:, np.newaxis])
        source = np.minimum(columns + is_moved, self.length - 1)
        for matrix in self._matrices.values():
            matrix[rows] = np.take_along_axis(matrix[rows], source, axis=1)
        self._matrices["lag"][rows, place] = _NONE


def encode_windows(keys: pa.Array, entries: pa.Table) -> tuple[int, bytes]:
    """Return the version and the encoded entries (WINDOW_SCHEMA). `keys[i]` is the key of row i."""
    named = pa.DictionaryArray.from_arrays(entries["row"].combine_chunks().cast(pa.int32()), keys)
    return STORED_VERSION, encode_columns(entries.set_column(0, "key", named))


def decode_windows(version: int, encoded: bytes) -> tuple[pa.Array, pa.Table]:
    """Return the keys and entries that `encode_windows` encoded. Raises StateVersionError if the version is unknown."""
    stored = decode_columns(version, encoded, STORED_VERSION)
    if not stored.num_rows:
        return pa.array([], pa.binary()), WINDOW_SCHEMA.empty_table()
    named = stored["key"].combine_chunks()
    return named.dictionary, stored.set_column(0, "row", named.indices.cast(pa.int64()))
