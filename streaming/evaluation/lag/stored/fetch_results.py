"""Store the results of fetches, one result for each commit.

After an outage, all 100,000 partitions of all groups can have a fetch result, and each sample needs all results. So the
results are stored in columns, and no code loops over single results at each sample.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.big_endian import BoolArray, Int64Array
from streaming.protocol.record_batches import Tail

Commit = tuple[str, int, int]
"""Topic, partition and committed offset."""

COMMIT = ["topic", "partition", "committed_offset"]
_TAIL = ["next_offset", "is_record", "read_to"]
_NEVER_MS = 0
"""The fetch time of a result from before a restart."""
_TAILS_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("committed_offset", pa.int64()),
        ("next_offset", pa.int64()),
        ("is_record", pa.bool_()),
        ("read_to", pa.int64()),
        ("fetched_at_ms", pa.int64()),
    ]
)
"""A commit, the first three fields of its `Tail`, and the time of the last fetch."""


def row_numbers(known: pa.Table, rows: pa.Table) -> Int64Array:
    """Return for each row of `rows` the number of the same row in `known`, or -1 if absent.

    The first column of `known` is the topic. The other columns are numbers. The rows of `known` are distinct.
    """
    topics, numbers = pc.unique(known["topic"]), known.column_names[1:]

    def packed(table: pa.Table) -> pa.Array:
        topic = pc.fill_null(pc.index_in(table["topic"], value_set=topics), -1)
        columns = [column.to_numpy().astype(np.int64) for column in (topic, *(table[name] for name in numbers))]
        values = np.column_stack(columns)
        buffers = [None, pa.py_buffer(values)]
        return pa.FixedSizeBinaryArray.from_buffers(pa.binary(8 * len(columns)), len(values), buffers)

    at = pc.fill_null(pc.index_in(packed(rows), value_set=packed(known)), -1)
    found: Int64Array = at.to_numpy(zero_copy_only=False)
    return found


class RowResults(NamedTuple):
    """The results for many rows, one column per field."""

    next_offset: Int64Array
    is_record: BoolArray
    read_to: Int64Array
    fetched_at_ms: Int64Array


class FetchResults:
    """The results of fetches, by commit. A commit without a fetch has no result."""

    def __init__(self) -> None:
        self._table = _TAILS_SCHEMA.empty_table()

    def items(self) -> Iterable[tuple[Commit, Tail]]:
        """Return each commit with its result."""
        return _tails(self._table).items()

    def of_rows(self, commits: pa.Table) -> RowResults:
        """Return the results for the rows of `commits`."""
        committed = commits["committed_offset"].to_numpy()
        never = np.full(len(committed), _NEVER_MS, dtype=np.int64)
        columns = RowResults(committed.copy(), np.zeros(len(committed), dtype=np.bool_), committed.copy(), never)
        if self._table.num_rows:
            numbers = row_numbers(self._table.select(COMMIT), commits)
            found = np.flatnonzero(numbers >= 0)
            tails = self._table.select(RowResults._fields).take(pa.array(numbers[found]))
            for column, values in zip(columns, tails.columns, strict=True):
                column[found] = values.to_numpy()
        return columns

    def of_commits(self, commits: Collection[Commit]) -> dict[Commit, Tail]:
        """Return the results for a few commits."""
        tails = {commit: Tail(commit[2], is_record=False, read_to=commit[2]) for commit in commits}
        return {**tails, **_tails(self._table.filter(self._is_of(tails)))}

    def put(self, tails: Mapping[Commit, Tail], fetched_at_ms: int = _NEVER_MS) -> None:
        """Store results. A new result replaces an earlier result for the same commit."""
        if tails:
            others = self._table.filter(pc.invert(self._is_of(tails)))
            self._table = pa.concat_tables([others, _tails_table(tails, fetched_at_ms)]).combine_chunks()

    def keep_only(self, commits: pa.Table) -> None:
        """Remove the results for all commits that are not in the table `commits`."""
        if self._table.num_rows:
            numbers = row_numbers(self._table.select(COMMIT), commits)
            self._table = self._table.take(pa.array(np.unique(numbers[numbers >= 0])))

    def forget_topics(self, topics: Collection[str]) -> None:
        """Remove the results for the given topics."""
        is_of_topic = pc.is_in(self._table["topic"], value_set=pa.array(sorted(topics), pa.string()))
        self._table = self._table.filter(pc.invert(is_of_topic))

    def _is_of(self, tails: Mapping[Commit, Tail]) -> pa.Array:
        return pa.array(row_numbers(_tails_table(tails).select(COMMIT), self._table) >= 0)


def _tails_table(tails: Mapping[Commit, Tail], fetched_at_ms: int = _NEVER_MS) -> pa.Table:
    rows = [(*commit, tail.next_offset, tail.is_record, tail.read_to, fetched_at_ms) for commit, tail in tails.items()]
    columns = list(zip(*rows, strict=True)) or [()] * len(_TAILS_SCHEMA)
    return pa.table(list(map(pa.array, columns, _TAILS_SCHEMA.types)), schema=_TAILS_SCHEMA)


def _tails(table: pa.Table) -> Mapping[Commit, Tail]:
    rows = zip(*(column.to_pylist() for column in table.select([*COMMIT, *_TAIL]).columns), strict=True)
    return {(topic, at, committed): Tail(*tail) for topic, at, committed, *tail in rows}
