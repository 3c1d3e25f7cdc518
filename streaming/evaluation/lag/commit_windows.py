"""The last commits of every group partition: what the status rules look at.

A window holds up to `length` entries {committed offset, timestamp, log offset of the record, lag at observation or
none}, oldest first. Rules, for one commit:

1. A tombstone ends what was before it: earlier entries go, and none of them can come back.
2. Entries stand in the order of the log. A commit read late is put in its place; one known already, or older than all
   of a full window, changes nothing.
3. One entry a slot of `slot_ms`, the slot's last commit: otherwise a group that commits every 10 ms would be evaluated
   by a tenth of a second. If the clock goes back (the coordinator moves to a broker whose clock is behind), a slot that
   it shows again is the same slot: its earlier entry goes. Slots are those of the clock (timestamp // slot_ms), not
   counted from the entry before as in Burrow's `min-distance`. So it is the commits alone that say what a window
   holds, not where a batch ended or the monitor started, and a batch may keep just the last commit of each slot
   (`last_per_slot`).
4. A commit pushes the oldest entry out of a full window.

And for one end offset that was asked for after a commit had been read:

5. The commit's entry learns its lag, once: at its slot's first observation. Burrow takes the end offset it knew
   *before* the commit: that lag is understated, often to 0, and a lag of 0 clears every alarm. Only the newest commit
   learns one: five commits measured by one end offset would look like a lag that shrinks.
6. An entry beyond the end is of a topic since deleted and created anew, or a made-up commit: it goes, and all before.

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
"""Inside the matrices only: no entry, or no lag seen. Both are offsets that do not exist."""

WINDOW_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("committed_offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("offsets_topic_offset", pa.int64()),
        ("lag", pa.int64()),
    ]
)
"""Entries one under the other, a row's together and oldest first; lag null where it was not seen."""

STORED_VERSION = 1
"""WINDOW_SCHEMA, the row given as the key of its commits' records (canonical), in a dictionary."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows side by side: matrices of one line a window; entries stand together where `is_entry`, oldest first.

    `lag` means something where `has_lag`.
    """

    committed_offset: Int64Array
    timestamp_ms: Int64Array
    lag: Int64Array
    is_entry: BoolArray
    has_lag: BoolArray


class CommitWindows:
    """Growing windows; the caller numbers the rows. 32 bytes an entry, `length` entries a row.

    >>> windows = CommitWindows(length=3, slot_ms=1000)
    >>> offsets, timestamps = np.array([5, 7, 9]), np.array([1_000, 2_000, 2_900])
    >>> windows.put(np.zeros(3, np.int64), offsets, timestamps, kafka_offsets=np.array([1, 2, 3]))
    >>> windows.observe(np.array([0]), np.array([3]), next_offsets=np.array([9]), end_offsets=np.array([12]))
    >>> windows.entries(np.array([0])).to_pydict()["committed_offset"]
    [5, 9]
    >>> windows.entries(np.array([0])).to_pydict()["lag"]
    [None, 3]
    """

    def __init__(self, length: int = WINDOW_COMMITS, slot_ms: int = SLOT_MS) -> None:
        if length < 2:
            raise ValueError("a window of less than two commits has nothing to compare")
        self.length = length
        self._slot_ms = slot_ms
        self._tombstoned_at: Int64Array = np.full(_FIRST_ROWS, _NONE, dtype=np.int64)
        # By name of the column; entries are aligned to the right, so that the newest stands last.
        self._matrices: dict[str, Int64Array] = {
            name: np.full((_FIRST_ROWS, length), _NONE, dtype=np.int64) for name in WINDOW_SCHEMA.names[1:]
        }

    def put(
        self, rows: Int64Array, committed_offsets: Int64Array, timestamps_ms: Int64Array, kafka_offsets: Int64Array
    ) -> None:
        """Take commits in, several a row if need be. TOMBSTONE as committed offset says that the key was deleted."""
        if not len(rows):
            return
        self._grow(int(rows.max()) + 1)
        in_order = np.lexsort((kafka_offsets, rows))
        first_of_row = np.flatnonzero(np.diff(rows[in_order], prepend=-1))
        nth_of_row = np.arange(len(rows)) - np.repeat(first_of_row, np.diff(first_of_row, append=len(rows)))
        timestamps_ms = clipped_times(timestamps_ms)
        for nth in range(int(nth_of_row.max()) + 1):
            one = in_order[nth_of_row == nth]
            is_tombstone = committed_offsets[one] == TOMBSTONE
            self._end(rows[one[is_tombstone]], kafka_offsets[one[is_tombstone]])
            one = one[~is_tombstone]
            self._put_one(rows[one], committed_offsets[one], timestamps_ms[one], kafka_offsets[one])

    def observe(
        self, rows: Int64Array, kafka_offsets: Int64Array, next_offsets: Int64Array, end_offsets: Int64Array
    ) -> None:
        """Rules 5 and 6, for distinct rows and the commit that was each row's newest when the ends were asked for.

        Lag counts from `next_offsets`: the offset of that commit, or of the first record after it. Commits read since
        then are left alone: they may lie beyond the end as it was.
        """
        if not len(rows):
            return
        lags = end_offsets - next_offsets
        orders = self._matrices["offsets_topic_offset"][rows]
        is_beyond = self._matrices["committed_offset"][rows] > end_offsets[:, np.newaxis]
        is_beyond &= orders < kafka_offsets[:, np.newaxis]
        last_beyond = np.where(is_beyond, orders, _NONE).max(axis=1)
        self._drop(rows, np.where(lags < 0, kafka_offsets, last_beyond))
        place = np.minimum(self._holder(self._matrices["offsets_topic_offset"][rows], kafka_offsets), self.length - 1)
        is_seen_first = self._matrices["lag"][rows, place] == _NONE
        is_seen_first &= (self._matrices["offsets_topic_offset"][rows, place] >= kafka_offsets) & (lags >= 0)
        self._matrices["lag"][rows[is_seen_first], place[is_seen_first]] = lags[is_seen_first]

    def as_of(self, rows: Int64Array, kafka_offsets: Int64Array) -> Windows:
        """The windows up to a commit of each row: a copy, as later writes do not change it."""
        orders = self._matrices["offsets_topic_offset"][rows]
        holder = self._holder(orders, kafka_offsets)
        is_entry = (orders != _NONE) & (np.arange(self.length) <= holder[:, np.newaxis])
        lags = self._matrices["lag"][rows]
        committed, timestamps = self._matrices["committed_offset"][rows], self._matrices["timestamp_ms"][rows]
        return Windows(committed, timestamps, lags, is_entry, is_entry & (lags != _NONE))

    def entries(self, rows: Int64Array) -> pa.Table:
        """The entries of some rows, to be stored (WINDOW_SCHEMA); `row` counts from 0 in the given order."""
        is_entry = self._matrices["offsets_topic_offset"][rows] != _NONE
        columns = [pa.array(np.repeat(np.arange(len(rows)), is_entry.sum(axis=1)))]
        columns += [pa.array(self._matrices[name][rows][is_entry]) for name in WINDOW_SCHEMA.names[1:-1]]
        lags = self._matrices["lag"][rows][is_entry]
        return pa.table([*columns, pa.array(lags, mask=lags == _NONE)], schema=WINDOW_SCHEMA)

    def restore(self, entries: pa.Table) -> None:
        """Put stored entries (WINDOW_SCHEMA) back, with their lags. What is known already stays as it is."""
        rows, committed, timestamps, kafka_offsets = (entries[name].to_numpy() for name in WINDOW_SCHEMA.names[:-1])
        self.put(rows, committed, timestamps, kafka_offsets)
        lags = entries["lag"].fill_null(_NONE).to_numpy()
        place = np.argmax(self._matrices["offsets_topic_offset"][rows] == kafka_offsets[:, np.newaxis], axis=1)
        unseen = self._matrices["offsets_topic_offset"][rows, place] == kafka_offsets
        unseen &= self._matrices["lag"][rows, place] == _NONE
        self._matrices["lag"][rows[unseen], place[unseen]] = lags[unseen]

    def clear(self, rows: Int64Array) -> None:
        """Empty some windows: their next commits stand in a different log, whose offsets begin anew."""
        if len(rows):
            self._grow(int(rows.max()) + 1)
            self._tombstoned_at[rows] = _NONE
            for matrix in self._matrices.values():
                matrix[rows] = _NONE

    def keep(self, rows: Int64Array) -> None:
        """Forget all other rows; the kept ones are numbered anew, in the given order."""
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

    def _holder(self, orders: Int64Array, kafka_offsets: Int64Array) -> Int64Array:
        """The place of a commit that once was an entry: its own, or that of the one that took its slot since."""
        holder: Int64Array = (orders < kafka_offsets[:, np.newaxis]).sum(axis=1)
        return holder

    def _end(self, rows: Int64Array, kafka_offsets: Int64Array) -> None:
        self._tombstoned_at[rows] = np.maximum(self._tombstoned_at[rows], kafka_offsets)
        self._drop(rows, kafka_offsets)

    def _drop(self, rows: Int64Array, up_to_kafka_offsets: Int64Array) -> None:
        """Take out the entries up to a log offset. They stand to the left, so the rest stays aligned."""
        is_gone = self._matrices["offsets_topic_offset"][rows] <= up_to_kafka_offsets[:, np.newaxis]
        for matrix in self._matrices.values():
            matrix[rows] = np.where(is_gone, _NONE, matrix[rows])

    def _put_one(
        self, rows: Int64Array, committed_offsets: Int64Array, timestamps_ms: Int64Array, kafka_offsets: Int64Array
    ) -> None:
        """At most one commit a row."""
        orders = self._matrices["offsets_topic_offset"][rows]
        before = self._holder(orders, kafka_offsets) - 1
        shares_slot = self._shares_slot(rows, timestamps_ms)
        is_later = orders >= kafka_offsets[:, np.newaxis]
        is_known = ((shares_slot & is_later) | (orders == kafka_offsets[:, np.newaxis])).any(axis=1)
        taken = (before >= 0) & ~is_known & (kafka_offsets > self._tombstoned_at[rows])
        # The entry that makes room: the slot's earlier one, which stands anywhere before; else the oldest.
        rows, place, is_earlier = rows[taken], before[taken], (shares_slot & ~is_later)[taken]
        gives_way = np.argmax(is_earlier, axis=1)
        # At the very place, nothing moves and the lag stays: the slot was seen already.
        moves = ~np.take_along_axis(is_earlier, place[:, np.newaxis], axis=1)[:, 0]
        self._make_room(rows[moves], gives_way[moves], place[moves])
        self._matrices["committed_offset"][rows, place] = committed_offsets[taken]
        self._matrices["timestamp_ms"][rows, place] = timestamps_ms[taken]
        self._matrices["offsets_topic_offset"][rows, place] = kafka_offsets[taken]

    def _shares_slot(self, rows: Int64Array, timestamps_ms: Int64Array) -> BoolArray:
        """Which entries of each row stand in the slot of a time."""
        is_entry = self._matrices["offsets_topic_offset"][rows] != _NONE
        slots = self._matrices["timestamp_ms"][rows] // self._slot_ms
        shares: BoolArray = is_entry & (slots == (timestamps_ms // self._slot_ms)[:, np.newaxis])
        return shares

    def _make_room(self, rows: Int64Array, gives_way: Int64Array, place: Int64Array) -> None:
        """Move the entries behind the one that gives way, up to a place, one to the left. The place has no lag yet."""
        columns = np.arange(self.length)
        is_moved = (columns >= gives_way[:, np.newaxis]) & (columns < place[:, np.newaxis])
        source = np.minimum(columns + is_moved, self.length - 1)
        for matrix in self._matrices.values():
            matrix[rows] = np.take_along_axis(matrix[rows], source, axis=1)
        self._matrices["lag"][rows, place] = _NONE


def encode_windows(keys: pa.Array, entries: pa.Table) -> tuple[int, bytes]:
    """The version and bytes of entries (WINDOW_SCHEMA) whose row i is the commits' key `keys[i]`."""
    named = pa.DictionaryArray.from_arrays(entries["row"].combine_chunks().cast(pa.int32()), keys)
    return STORED_VERSION, encode_columns(entries.set_column(0, "key", named))


def decode_windows(version: int, encoded: bytes) -> tuple[pa.Array, pa.Table]:
    """The keys and entries of `encode_windows`. Raises StateVersionError for a version not known here."""
    stored = decode_columns(version, encoded, STORED_VERSION)
    if not stored.num_rows:
        return pa.array([], pa.binary()), WINDOW_SCHEMA.empty_table()
    named = stored["key"].combine_chunks()
    return named.dictionary, stored.set_column(0, "row", named.indices.cast(pa.int64()))
