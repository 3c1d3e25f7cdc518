"""The rows of `group_lag` of one group, as columns. The rows of a window come in pieces (`lag_pieces`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from assignors import TopicPartition

Lags = Mapping[TopicPartition, int | None]
"""The lag of each partition. None: unknown."""


class LagPartitions(NamedTuple):
    """The partitions of a group, as far as its rows must be known before the first piece.

    `with_rows` are the partitions with a row in the window, and `last_ms` are the times of their last rows. `earlier`
    has the lag in the last row of each partition in the look-back. `earlier_ages` has the time of this row and the age
    of the next record in seconds, or NaN if no record waits or the age is unknown. `ended_before` are the partitions
    whose last row in the look-back is an end row. They are not in `earlier`.
    """

    with_rows: Sequence[TopicPartition]
    last_ms: NDArray[np.int64]
    earlier: Lags
    earlier_ages: Mapping[TopicPartition, tuple[int, float]]
    ended_before: Collection[TopicPartition]


class LagRows(NamedTuple):
    """One piece of the rows in a window. `codes` are indices into `LagPartitions.with_rows`.

    `records` is the lag. If `is_known` is False, it has no meaning. `is_end` is True for an end row. `ages` are the
    ages of the next records in seconds, or NaN if no record waits or the age is unknown.
    """

    sampled_ms: NDArray[np.int64]
    codes: NDArray[np.int64]
    records: NDArray[np.int64]
    is_known: NDArray[np.bool_]
    is_end: NDArray[np.bool_]
    ages: NDArray[np.float64]


def is_first_of_run(sorted_values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return True for each value that differs from the value before it.

    >>> is_first_of_run(np.array([5, 5, 7])).tolist(), is_first_of_run(np.array([], dtype=np.int64)).tolist()
    ([True, False, True], [])
    """
    return np.append(True, sorted_values[1:] != sorted_values[:-1])[: len(sorted_values)]
