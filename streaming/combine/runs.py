"""Commit runs: what one batch says of each key between two boundaries of its group, in bulk.

What is needed of any number of commits are the first, the last and how many; and whether the key was deleted among
them. No Python statement runs per commit, none per key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.boundaries import Boundary, group_numbers
from streaming.combine.commits import COMMIT_SCHEMA, TOMBSTONE, key_codes
from streaming.combine.wire import BoolArray, Int64Array

BEFORE_ANY = -1
"""In place of a boundary's offset: the batch has none of the group before these commits."""

READ_COMMIT_SCHEMA = COMMIT_SCHEMA.append(pa.field("missing_below", pa.int64()))
"""Commits as read; `missing_below`: the highest offset below that the batch left out, -1 where there is none."""

RUN_SCHEMA = pa.schema(
    [
        ("offsets_topic_partition", pa.int32()),
        ("key", pa.binary()),
        ("boundary_offset", pa.int64()),
        ("first_offset", pa.int64()),
        ("first_ms", pa.int64()),
        ("first_missing", pa.int64()),
        ("dropped_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("last_ms", pa.int64()),
        ("run_first_ms", pa.int64()),
        ("run_commits", pa.int64()),
    ]
)
"""One row a Kafka partition, key and boundary before it (BEFORE_ANY: none). Offsets are the log's, -1 is none.

first_*    the first commit; `first_missing` is its `missing_below`
dropped_*  the first tombstone
last_*     the last commit; none where a tombstone came after it
run_*      of the commits behind the last tombstone the first one's time, and how many they are
"""

_OFFSET_BITS = 48


def runs_of(
    commits: pa.Table, keys: pa.Array, code: Int64Array, boundaries: Mapping[int, Sequence[Boundary]]
) -> pa.Table:
    """Reduce commits (READ_COMMIT_SCHEMA, each partition's in log order) to runs (RUN_SCHEMA).

    `keys` and `code` are of `key_codes`; `boundaries` those of each Kafka partition up to the last commit, in order.
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
    offset, ms = commits["offsets_topic_offset"], commits["timestamp_ms"]
    return _table(rows, commits, boundary_offset, (offset, ms, commits["missing_below"]), offset, (offset, ms), ms)


def joined_runs(runs: pa.Table) -> pa.Table:
    """Make one row of several of the same partition, key and boundary, which stand in log order."""
    keys, code = key_codes(runs)
    partition, boundary_offset = runs["offsets_topic_partition"].to_numpy(), runs["boundary_offset"].to_numpy()
    rows = _rows_of_runs(
        _run_numbers(len(keys), code, partition, boundary_offset),
        runs["first_offset"].to_numpy() >= 0,
        runs["dropped_offset"].to_numpy() >= 0,
        runs["run_commits"].to_numpy(),
    )
    first = (runs["first_offset"], runs["first_ms"], runs["first_missing"])
    last = (runs["last_offset"], runs["last_ms"])
    return _table(rows, runs, boundary_offset, first, runs["dropped_offset"], last, runs["run_first_ms"])


def _boundary_offsets(
    keys: pa.Array,
    code: Int64Array,
    partition: Int64Array,
    offsets_topic_offset: Int64Array,
    boundaries: Mapping[int, Sequence[Boundary]],
) -> Int64Array:
    """The offset of the last boundary of its group before each commit; BEFORE_ANY where there is none."""
    found = np.full(len(code), BEFORE_ANY, dtype=np.int64)
    groups = sorted({boundary.group for of_partition in boundaries.values() for boundary in of_partition})
    group = group_numbers(keys, groups)[code] if groups else np.empty(0, dtype=np.int64)
    rows = np.flatnonzero(group >= 0)
    if not len(rows):
        return found
    number_of, partitions = {name: number for number, name in enumerate(groups)}, max(boundaries) + 1
    # A group is a group within its partition; its boundaries and commits fall in line by one number.
    placed = np.array(
        [
            (number_of[boundary.group] * partitions + at, boundary.offsets_topic_offset)
            for at, of_partition in boundaries.items()
            for boundary in of_partition
        ]
    )
    place = group[rows] * partitions + partition[rows]
    places = np.unique(placed[:, 0])
    rank = np.minimum(np.searchsorted(places, place), len(places) - 1)
    own = places[rank] == place
    ranked = np.sort((np.searchsorted(places, placed[:, 0]) << _OFFSET_BITS) | placed[:, 1])
    before = np.searchsorted(ranked, (rank << _OFFSET_BITS) | offsets_topic_offset[rows]) - 1
    own &= (before >= 0) & (ranked[before] >> _OFFSET_BITS == rank)
    found[rows[own]] = ranked[before[own]] & ((1 << _OFFSET_BITS) - 1)
    return found


def _run_numbers(keys: int, code: Int64Array, partition: Int64Array, boundary_offset: Int64Array) -> Int64Array:
    """Number the runs. Nearly always a key is one run, and its number the key's: only others have to be sorted out."""
    home = np.zeros(keys, dtype=np.int64)
    home[code] = partition
    other = np.flatnonzero((boundary_offset != BEFORE_ANY) | (home[code] != partition))
    numbers: Int64Array = code.copy()
    if len(other):
        _, stretch = np.unique(
            (partition[other].astype(np.int64) << _OFFSET_BITS) + boundary_offset[other], return_inverse=True
        )
        _, number = np.unique(stretch * keys + code[other], return_inverse=True)
        numbers[other] = keys + number
    return numbers


@dataclass(frozen=True, slots=True)
class _RunRows:
    """By run the row that tells each part of it, -1 where none does."""

    any_row: Int64Array
    first: Int64Array
    dropped: Int64Array
    last: Int64Array
    run_first: Int64Array
    run_commits: Int64Array


def _rows_of_runs(
    run: Int64Array, has_commit: BoolArray, has_tombstone: BoolArray, earlier_commits: Int64Array
) -> _RunRows:
    """Find the rows. `earlier_commits`: how many of a row's commits stand behind all its tombstones."""
    runs, everything = int(run.max(initial=-1)) + 1, np.arange(len(run))
    commits, tombstones = np.flatnonzero(has_commit), np.flatnonzero(has_tombstone)
    last_dropped = _last(run, tombstones, runs)
    lasting = np.flatnonzero((earlier_commits > 0) & (everything >= last_dropped[run]))
    rows = _RunRows(
        any_row=(any_row := _last(run, everything, runs)),
        first=_first(run, commits, runs),
        dropped=_first(run, tombstones, runs),
        last=_last(run, lasting, runs),
        run_first=_first(run, lasting, runs),
        run_commits=np.bincount(run[lasting], earlier_commits[lasting], runs).astype(np.int64),
    )
    there = any_row >= 0
    return rows if there.all() else _RunRows(*(getattr(rows, name)[there] for name in _RunRows.__slots__))


def _table(  # noqa: PLR0913, PLR0917 - the columns that the parts of a run are told by
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
        *(_taken(column, rows.first) for column in first),
        _taken(dropped, rows.dropped),
        *(_taken(column, rows.last) for column in last),
        _taken(run_first_ms, rows.run_first),
        rows.run_commits,
    ]
    return pa.table(columns, schema=RUN_SCHEMA)


def _last(run: Int64Array, rows: Int64Array, runs: int) -> Int64Array:
    """The last of some rows of each run: of a place that is assigned more than once the last stays."""
    last: Int64Array = np.full(runs, -1, dtype=np.int64)
    last[run[rows]] = rows
    return last


def _first(run: Int64Array, rows: Int64Array, runs: int) -> Int64Array:
    return _last(run, rows[::-1], runs)


def _taken(column: pa.ChunkedArray, rows: Int64Array) -> Int64Array:
    return np.where(rows >= 0, column.to_numpy()[rows], -1) if len(column) else rows


def of_boundary(runs: pa.Table, *, is_before_any: bool) -> pa.Table:
    """The runs before any boundary of their group, or those after one."""
    before_any = pc.equal(runs["boundary_offset"], BEFORE_ANY)
    return runs.filter(before_any if is_before_any else pc.invert(before_any))
