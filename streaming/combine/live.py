"""The live commits of a Kafka partition: the last commit of every key, with what its generation committed so far."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.commits import COMMIT_SCHEMA, TOMBSTONE, last_per_key
from streaming.combine.gaps import PartitionCommits
from streaming.combine.wire import Int64Array

LIVE_SCHEMA = COMMIT_SCHEMA.append(pa.field("run_first_ms", pa.int64())).append(pa.field("run_commits", pa.int64()))
"""`run_commits` commits since the group's last boundary, the first of them at `run_first_ms`; none: 0 and -1."""


def live_commits(
    known: pa.Table, newer: pa.Table, early: pa.Table, partition_commits: Mapping[bytes, PartitionCommits]
) -> pa.Table:
    """What is live after a batch.

    `newer` are the batch's commits (COMMIT_SCHEMA), `early` its runs before any boundary of their group;
    `partition_commits` say by key how the groups stand that had one.
    """
    last = last_per_key(pa.concat_tables([known.select(COMMIT_SCHEMA.names), newer]))
    alive = last.filter(pc.not_equal(last["committed_offset"], TOMBSTONE))
    place = _places(alive["key"], known["key"])
    first_ms = np.where(place >= 0, _taken(known["run_first_ms"], place), -1)
    commits = np.where(place >= 0, _taken(known["run_commits"], place), 0)
    place = _places(alive["key"], early["key"])
    is_new = (place >= 0) & ((commits == 0) | (_taken(early["dropped_offset"], place) >= 0))
    first_ms = np.where(is_new, _taken(early["run_first_ms"], place), first_ms)
    commits = np.where(is_new, 0, commits) + np.where(place >= 0, _taken(early["run_commits"], place), 0)
    if partition_commits:
        own = pa.array(list(partition_commits), pa.binary())
        place = _places(alive["key"], pa.chunked_array([own]))
        stood = np.array([commits[2:] for commits in partition_commits.values()], dtype=np.int64)
        first_ms = np.where(place >= 0, stood[place, 0], first_ms)
        commits = np.where(place >= 0, stood[place, 1], commits)
    return _with_columns(alive, {"run_first_ms": first_ms, "run_commits": commits})


def _places(keys: pa.ChunkedArray, of_keys: pa.ChunkedArray) -> Int64Array:
    """The row of each key among others, -1 where it is not there."""
    found = pc.index_in(keys, value_set=of_keys.combine_chunks())
    places: Int64Array = pc.fill_null(found, -1).to_numpy().astype(np.int64)
    return places


def _taken(column: pa.ChunkedArray, places: Int64Array) -> Int64Array:
    """The values at some places; whatever where there is none."""
    values = column.to_numpy()
    return values[places] if len(values) else np.full(len(places), -1, dtype=np.int64)


def _with_columns(commits: pa.Table, columns: Mapping[str, Int64Array]) -> pa.Table:
    arrays = [*commits.columns, *(pa.array(columns[name], pa.int64()) for name in LIVE_SCHEMA.names[-2:])]
    return pa.table(arrays, schema=LIVE_SCHEMA)
