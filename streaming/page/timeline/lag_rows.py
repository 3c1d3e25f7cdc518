"""The rows of `group_lag` of one group, as columns.

A group with 1,000 partitions can have 20 million rows in seven days. All rows together would need several GB of memory.
So the reader reads the rows in pieces, the oldest piece first. `LagLine` and `LateTimes` process one piece at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from assignors import TopicPartition
from streaming.page.timeline.window import Window

ROWS_AT_ONCE: Final = 500_000

Lags = Mapping[TopicPartition, int | None]
"""The lag of each partition. None means unknown."""


class LagPartitions(NamedTuple):
    """The facts about a group's partitions that `LagLine` and `LateTimes` need before the first piece.

    `with_rows` contains the partitions with a row in the window. `last_ms` contains the time of the last row of each of
    these partitions. `earlier` and `earlier_ages` come from the last row of each partition in the look-back. `earlier`
    contains the lag. `earlier_ages` contains the time of this row, and the age in seconds of the oldest record that the
    group has not committed. The age is NaN if the partition has no lag, or if the age is unknown. `ended_before`
    contains the partitions whose last row in the look-back is an end row. `earlier` does not contain the partitions in
    `ended_before`.
    """

    with_rows: Sequence[TopicPartition]
    last_ms: NDArray[np.int64]
    earlier: Lags
    earlier_ages: Mapping[TopicPartition, tuple[int, float]]
    ended_before: Collection[TopicPartition]


class LagRows(NamedTuple):
    """One piece of the rows in a window. `codes` are indices into `LagPartitions.with_rows`.

    `records` is the lag. If `is_known` is False, the lag is unknown, and `records` has no meaning. `is_end` is True for
    an end row. `ages` contains the age in seconds of the oldest record that the group has not committed. An age is NaN
    if the partition has no lag, or if the age is unknown.
    """

    sampled_ms: NDArray[np.int64]
    codes: NDArray[np.int64]
    records: NDArray[np.int64]
    is_known: NDArray[np.bool_]
    is_end: NDArray[np.bool_]
    ages: NDArray[np.float64]


def is_first_of_run(sorted_values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return an array that is True where a value differs from the previous value. The first entry of the array is True.

    >>> is_first_of_run(np.array([5, 5, 7])).tolist(), is_first_of_run(np.array([], dtype=np.int64)).tolist()
    ([True, False, True], [])
    """
    return np.append(True, sorted_values[1:] != sorted_values[:-1])[: len(sorted_values)]


def pieces(rows_by_minute: Iterable[tuple[int, int]], window: Window) -> Sequence[Window]:
    """Divide the window into pieces. `rows_by_minute` contains the start and the number of rows of each minute, sorted.

    A piece has at most `ROWS_AT_ONCE` rows, except if one minute has more rows. The result has at least one piece.

    >>> found = pieces([(0, 400_000), (60_000, 90_000), (120_000, 20_000)], Window(5, 150_000))
    >>> [(one.from_ms, one.to_ms) for one in found]
    [(5, 119999), (120000, 150000)]
    """
    found, from_ms, rows_in_piece = [], window.from_ms, 0
    for minute_ms, rows in rows_by_minute:
        if rows_in_piece and rows_in_piece + rows > ROWS_AT_ONCE:
            found.append(Window(from_ms, minute_ms - 1))
            from_ms, rows_in_piece = minute_ms, 0
        rows_in_piece += rows
    return [*found, Window(from_ms, window.to_ms)]
