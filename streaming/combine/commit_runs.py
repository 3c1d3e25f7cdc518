"""Reduces the commits of a batch to commit runs. A run is one row for all commits of a key between two boundaries.

A run contains the key's first commit, last commit, number of commits and first tombstone. NumPy and Arrow process whole
columns. No loop in Python processes single commits or keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.big_endian import BoolArray, Int64Array
from streaming.combine.commits import COMMIT_SCHEMA, TOMBSTONE, key_codes
from streaming.combine.group_boundaries import Boundary, group_numbers

BEFORE_ANY = -1
"""Replaces the boundary's offset if the batch has no boundary of the group before the commit."""

READ_COMMIT_SCHEMA = COMMIT_SCHEMA.append(pa.field("missing_below", pa.int64()))
"""Schema of commits before reduction. `missing_below`: the batch's highest missing offset below the commit, or -1."""

RUN_SCHEMA = pa.schema(
    [
        ("offsets_topic_partition", pa.int32()),
        ("key", pa.binary()),
        ("boundary_offset", pa.int64()),
        ("first_offset", pa.int64()),
        ("first_ms", pa.int64()),
        ("first_committed", pa.int64()),
        ("first_missing", pa.int64()),
        ("dropped_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("last_ms", pa.int64()),
        ("last_committed", pa.int64()),
        ("run_first_ms", pa.int64()),
        ("run_commits", pa.int64()),
    ]
)
"""One row per run. The partition, the key and the boundary before the run (or BEFORE_ANY) identify a run.

All offsets are positions in `__consumer_offsets`, except `first_committed` and `last_committed`: these are committed
offsets. The value -1 means that the record does not exist.

first_*    the first commit; `first_missing` is the `missing_below` of this commit
dropped_*  the first tombstone
last_*     the last commit, or -1 if a tombstone came after it
run_*      the commits after the last tombstone: the time of the first one, and their number
"""

_OFFSET_BITS = 48


def reduce_to_runs(
    commits: pa.Table, keys: pa.Array, code: Int64Array, boundaries: Mapping[int, Sequence[Boundary]]
) -> pa.Table:
    """Reduce commits (READ_COMMIT_SCHEMA) to runs (RUN_SCHEMA). The commits of each partition must be in log order.

    `keys` and `code` are the results of `key_codes`. `boundaries` maps each partition to its boundaries in log order,
    up to the last commit.
    """
    partition, offsets_topic_offset = (
        commits["offsets_topic_partition"].to_numpy(),
        commits["offsets_topic_offset"].to_numpy(),
    )
    boundary_offset = _boundary_offsets(keys, code, partition, offsets_topic_offset, boundaries)
    is_tombstone = commits["committed_offset"].to_numpy() == TOMBSTONE
    rows = _rows_of_runs(
        _run_numbers(len(keys), code, partition, boundary_offset), ~is_tombstone, is_tombstone, ~is_tombstone
    )
    offset, ms, committed = (commits[name] for name in ("offsets_topic_offset", "timestamp_ms", "committed_offset"))
    first = (offset, ms, committed, commits["missing_below"])
    return _table(rows, commits, boundary_offset, first, offset, (offset, ms, committed), ms)


def join_runs(runs: pa.Table) -> pa.Table:
    """Replace all rows that have the same partition, key and boundary by one row. Rows must be in log order."""
    keys, code = key_codes(runs)
    partition, boundary_offset = runs["offsets_topic_partition"].to_numpy(), runs["boundary_offset"].to_numpy()
    rows = _rows_of_runs(
        _run_numbers(len(keys), code, partition, boundary_offset),
        runs["first_offset"].to_numpy() >= 0,
        runs["dropped_offset"].to_numpy() >= 0,
        runs["run_commits"].to_numpy(),
    )
    first = tuple(runs[name] for name in ("first_offset", "first_ms", "first_committed", "first_missing"))
    last = tuple(runs[name] for name in ("last_offset", "last_ms", "last_committed"))
    return _table(rows, runs, boundary_offset, first, runs["dropped_offset"], last, runs["run_first_ms"])


def _boundary_offsets(
    keys: pa.Array,
    code: Int64Array,
    partition: Int64Array,
    offsets_topic_offset: Int64Array,
    boundaries: Mapping[int, Sequence[Boundary]],
) -> Int64Array:
    """For each commit, return the offset of its group's last boundary before the commit, or BEFORE_ANY."""
    last_offsets = np.full(len(code), BEFORE_ANY, dtype=np.int64)
    groups = sorted({boundary.group for of_partition in boundaries.values() for boundary in of_partition})
    group = group_numbers(keys, groups)[code] if groups else np.empty(0, dtype=np.int64)
    rows = np.flatnonzero(group >= 0)
    if not len(rows):
        return last_offsets
    number_by_group, partitions = {name: number for number, name in enumerate(groups)}, max(boundaries) + 1
    # One number identifies a group and its partition. Boundaries and commits are compared by this number.
    boundary_rows = np.array(
        [
            (number_by_group[boundary.group] * partitions + at, boundary.offsets_topic_offset)
            for at, of_partition in boundaries.items()
            for boundary in of_partition
        ]
    )
    number = group[rows] * partitions + partition[rows]
    numbers = np.unique(boundary_rows[:, 0])
    rank = np.minimum(np.searchsorted(numbers, number), len(numbers) - 1)
    has_boundary = numbers[rank] == number
    ranked_boundaries = np.sort((np.searchsorted(numbers, boundary_rows[:, 0]) << _OFFSET_BITS) | boundary_rows[:, 1])
    before = np.searchsorted(ranked_boundaries, (rank << _OFFSET_BITS) | offsets_topic_offset[rows]) - 1
    has_boundary &= (before >= 0) & (ranked_boundaries[before] >> _OFFSET_BITS == rank)
    last_offsets[rows[has_boundary]] = ranked_boundaries[before[has_boundary]] & ((1 << _OFFSET_BITS) - 1)
    return last_offsets


def _run_numbers(keys: int, code: Int64Array, partition: Int64Array, boundary_offset: Int64Array) -> Int64Array:
    """For each commit, return the index of its run.

    The first run of a key has the index of the key. So only the commits of later runs must be sorted.
    """
    key_partition = np.zeros(keys, dtype=np.int64)
    key_partition[code] = partition
    other = np.flatnonzero((boundary_offset != BEFORE_ANY) | (key_partition[code] != partition))
    numbers: Int64Array = code.copy()
    if len(other):
        _, interval = np.unique(
            (partition[other].astype(np.int64) << _OFFSET_BITS) + boundary_offset[other], return_inverse=True
        )
        _, number = np.unique(interval * keys + code[other], return_inverse=True)
        numbers[other] = keys + number
    return numbers


@dataclass(frozen=True, slots=True)
class _RunRows:
    """Row numbers: each run is built from these rows.

    Each array contains one row number per run, or -1 if there is no such row. Exception: `run_commits` contains the
    number of commits of each run.
    """

    any_row: Int64Array
    first: Int64Array
    dropped: Int64Array
    last: Int64Array
    run_first: Int64Array
    run_commits: Int64Array


def _rows_of_runs(
    run: Int64Array, has_commit: BoolArray, has_tombstone: BoolArray, run_commits: Int64Array
) -> _RunRows:
    """Find the rows from which each run is built.

    Each row is a commit or a run. For a commit, `run_commits` is 1 (for a tombstone 0). For a run, `run_commits` is the
    number of commits after the last tombstone.
    """
    runs, everything = int(run.max(initial=-1)) + 1, np.arange(len(run))
    commits, tombstones = np.flatnonzero(has_commit), np.flatnonzero(has_tombstone)
    last_dropped = _last(run, tombstones, runs)
    after_tombstones = np.flatnonzero((run_commits > 0) & (everything >= last_dropped[run]))
    rows = _RunRows(
        any_row=(any_row := _last(run, everything, runs)),
        first=_first(run, commits, runs),
        dropped=_first(run, tombstones, runs),
        last=_last(run, after_tombstones, runs),
        run_first=_first(run, after_tombstones, runs),
        run_commits=np.bincount(run[after_tombstones], run_commits[after_tombstones], runs).astype(np.int64),
    )
    is_used = any_row >= 0
    return rows if is_used.all() else _RunRows(*(getattr(rows, name)[is_used] for name in _RunRows.__slots__))


def _table(  # noqa: PLR0913, PLR0917 - the source columns of a run
    rows: _RunRows,
    source: pa.Table,
    boundary_offset: Int64Array,
    first: Sequence[pa.ChunkedArray],
    dropped: pa.ChunkedArray,
    last: Sequence[pa.ChunkedArray],
    run_first_ms: pa.ChunkedArray,
) -> pa.Table:
    places = pa.array(rows.any_row)
    columns = [
        source["offsets_topic_partition"].take(places),
        source["key"].take(places),
        boundary_offset[rows.any_row],
        *(_take(column, rows.first) for column in first),
        _take(dropped, rows.dropped),
        *(_take(column, rows.last) for column in last),
        _take(run_first_ms, rows.run_first),
        rows.run_commits,
    ]
    return pa.table(columns, schema=RUN_SCHEMA)


def _last(run: Int64Array, rows: Int64Array, runs: int) -> Int64Array:
    """For each run, return the last of its rows. If an index gets several values, NumPy stores the last value."""
    last: Int64Array = np.full(runs, -1, dtype=np.int64)
    last[run[rows]] = rows
    return last


def _first(run: Int64Array, rows: Int64Array, runs: int) -> Int64Array:
    return _last(run, rows[::-1], runs)


def _take(column: pa.ChunkedArray, rows: Int64Array) -> Int64Array:
    return np.where(rows >= 0, column.to_numpy()[rows], -1) if len(column) else rows


def select_runs(runs: pa.Table, *, is_before_any: bool) -> pa.Table:
    """If `is_before_any` is True, return the runs with the boundary BEFORE_ANY. Otherwise return all other runs."""
    before_any = pc.equal(runs["boundary_offset"], BEFORE_ANY)
    return runs.filter(before_any if is_before_any else pc.invert(before_any))
