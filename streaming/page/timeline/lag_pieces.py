"""Convert rows of `group_lag` to columns, piece by piece.

A group with 1,000 partitions has 20 million rows in seven days. These rows need several GB of memory. So the rows of a
window come in pieces, in the order of time. The computations add one piece at a time (`LagLine`, `LateTimes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignors import TopicPartition
from streaming.delta.cells import timestamp_ms
from streaming.delta.tables.lag import OFFSET_DELETED
from streaming.page.timeline.lag_rows import LagPartitions, LagRows
from streaming.page.timeline.window import Window

ROWS_AT_ONCE: Final = 500_000


def pieces(rows_by_minute: Iterable[tuple[int, int]], window: Window) -> Sequence[Window]:
    """Divide the window into pieces. `rows_by_minute` has the start and the number of rows of each minute, sorted.

    A piece has at most `ROWS_AT_ONCE` rows, except if it is a single minute. There is always a last piece.

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


def lag_partitions(inside: Sequence[Mapping[str, Any]], last_before: Sequence[Mapping[str, Any]]) -> LagPartitions:
    """Return the partitions from the time of the last row of each partition in the window, and the last rows before."""
    inside = sorted(inside, key=_partition)
    ended = {_partition(row) for row in last_before if row["unknown_reason"] == OFFSET_DELETED}
    return LagPartitions(
        with_rows=[_partition(row) for row in inside],
        last_ms=np.array([timestamp_ms(row["last_time"]) for row in inside], dtype=np.int64),
        earlier={_partition(row): row["lag"] for row in last_before if _partition(row) not in ended},
        earlier_ages={_partition(row): (timestamp_ms(row["sampled_time"]), _age(row)) for row in last_before},
        ended_before=ended,
    )


def lag_rows(rows: pa.Table, with_rows: Sequence[TopicPartition]) -> LagRows:
    """Convert rows of the table. `with_rows` are sorted."""
    topics = rows["topic"].cast(pa.string()).combine_chunks().dictionary_encode()
    numbers = {topic: number for number, topic in enumerate(sorted({topic for topic, _ in with_rows}))}
    keys = np.array([_key(numbers[topic], partition) for topic, partition in with_rows], dtype=np.int64)
    topic_numbers = np.array([numbers[topic] for topic in topics.dictionary.to_pylist()], dtype=np.int64)
    of_topic = topic_numbers[topics.indices.to_numpy(zero_copy_only=False)]
    partitions = rows["partition"].to_numpy().astype(np.int64)
    waits = pc.fill_null(pc.greater(rows["lag"], 0), fill_value=False)
    ages = pc.if_else(waits, rows["lag_seconds"].cast(pa.float64()), None)
    is_end = pc.equal(rows["unknown_reason"].cast(pa.string()), OFFSET_DELETED)
    return LagRows(
        sampled_ms=rows["sampled_time"].cast(pa.int64()).to_numpy() // 1000,
        codes=np.searchsorted(keys, _key(of_topic, partitions)),
        records=pc.fill_null(rows["lag"], 0).to_numpy().astype(np.int64),
        is_known=pc.is_valid(rows["lag"]).to_numpy(),
        is_end=pc.fill_null(is_end, fill_value=False).to_numpy().astype(bool),
        ages=pc.fill_null(ages, float("nan")).to_numpy().astype(np.float64),
    )


def _key(topic_number: Any, partition: Any) -> Any:  # noqa: ANN401 - numbers or arrays of numbers
    return topic_number * (1 << 32) + partition


def _partition(row: Mapping[str, Any]) -> TopicPartition:
    return row["topic"], row["partition"]


def _age(row: Mapping[str, Any]) -> float:
    """Return the age of the next record in seconds, or NaN."""
    return float(row["lag_seconds"]) if row["lag"] and row["lag_seconds"] is not None else float("nan")
