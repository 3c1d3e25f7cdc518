"""Updates the live commits of a `__consumer_offsets` partition.

A live commit is the last commit of a key. The row of a live commit also contains the number of commits of its key in
the group's current generation.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.big_endian import Int64Array
from streaming.combine.commits import COMMIT_SCHEMA, TOMBSTONE, last_per_key
from streaming.combine.gaps import PartitionCommits

LIVE_SCHEMA = COMMIT_SCHEMA.append(pa.field("run_first_ms", pa.int64())).append(pa.field("run_commits", pa.int64()))
"""The schema of live commits.

`run_commits` is the number of the key's commits since the group's last boundary. `run_first_ms` is the timestamp of the
first of these commits, or -1 if there is none.
"""


def update_live_commits(
    known: pa.Table, newer: pa.Table, early: pa.Table, partition_commits: Mapping[bytes, PartitionCommits]
) -> pa.Table:
    """Return the live commits after a batch (LIVE_SCHEMA).

    `known` has the live commits before the batch, and `newer` has the commits of the batch (COMMIT_SCHEMA). `early` has
    the runs (RUN_SCHEMA) before the first boundary of their group in the batch. `partition_commits` contains the
    commits by key, only for groups that have a boundary in the batch.
    """
    last = last_per_key(pa.concat_tables([known.select(COMMIT_SCHEMA.names), newer]))
    alive = last.filter(pc.not_equal(last["committed_offset"], TOMBSTONE))
    row = _find_rows(alive["key"], known["key"])
    first_ms = np.where(row >= 0, _take(known["run_first_ms"], row), -1)
    commits = np.where(row >= 0, _take(known["run_commits"], row), 0)
    row = _find_rows(alive["key"], early["key"])
    is_new = (row >= 0) & ((commits == 0) | (_take(early["dropped_offset"], row) >= 0))
    first_ms = np.where(is_new, _take(early["run_first_ms"], row), first_ms)
    commits = np.where(is_new, 0, commits) + np.where(row >= 0, _take(early["run_commits"], row), 0)
    if partition_commits:
        own = pa.array(list(partition_commits), pa.binary())
        row = _find_rows(alive["key"], pa.chunked_array([own]))
        runs = np.array([commits[3:] for commits in partition_commits.values()], dtype=np.int64)
        first_ms = np.where(row >= 0, runs[row, 0], first_ms)
        commits = np.where(row >= 0, runs[row, 1], commits)
    return _with_columns(alive, {"run_first_ms": first_ms, "run_commits": commits})


def _find_rows(keys: pa.ChunkedArray, known_keys: pa.ChunkedArray) -> Int64Array:
    """For each key, return the row number of the same key in `known_keys`, or -1."""
    index = pc.index_in(keys, value_set=known_keys.combine_chunks())
    rows: Int64Array = pc.fill_null(index, -1).to_numpy().astype(np.int64)
    return rows


def _take(column: pa.ChunkedArray, rows: Int64Array) -> Int64Array:
    """Return the values at these rows. The value for row -1 has no meaning."""
    values = column.to_numpy()
    return values[rows] if len(values) else np.full(len(rows), -1, dtype=np.int64)


def _with_columns(commits: pa.Table, columns: Mapping[str, Int64Array]) -> pa.Table:
    arrays = [*commits.columns, *(pa.array(columns[name], pa.int64()) for name in LIVE_SCHEMA.names[-2:])]
    return pa.table(arrays, schema=LIVE_SCHEMA)
