"""Reads the rows of one group in a time range, but only the columns that the timeline shows.

A rebalance storm of seven days can have ten thousand rows with hundreds of members each. Python objects for all members
would need too much memory. So `marks` and `generations` first read only the times of all rows. Then, for each column,
both methods read the members and other details of only one row. `lag` returns rows in pieces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignors import TopicPartition
from streaming.delta.cells import timestamp_ms, utc
from streaming.delta.stored import sampled_times
from streaming.delta.stored_table import StoredTable, where
from streaming.delta.tables import COMMIT_GAPS, GROUP_CONDITIONS, GROUP_GENERATIONS, GROUP_LAG, REBALANCES
from streaming.delta.tables.lag import END_REASONS
from streaming.evaluation.rebalances.rebalance_words import describe_rebalance
from streaming.group.members import member_name
from streaming.group.snapshot import OVER, UNKNOWN
from streaming.page.timeline.history import Change, ConditionRow, Gap, Generation, Holding, Mark, marks
from streaming.page.timeline.lag_line import LagPartitions, LagRows, pieces
from streaming.page.timeline.window import HOUR_MS, Window
from streaming.past.silence import LOOK_BACK_MS

_LAG_COLUMNS: Final = "sampled_time, topic, partition, lag, unknown_reason, lag_seconds"
_GAP_LOOK_BACK_MS: Final = HOUR_MS
"""A commit gap that ends in the window can belong to a rebalance before the window."""
_CONDITION_LOOK_BACK_MS: Final = 25 * HOUR_MS
"""The first sample of each UTC date writes a row for each active condition. So this period contains such a row."""


class GroupTables:
    """The tables of one group. Each method reads one table. Raises NoTableError or TableReadError."""

    def __init__(self, root: str, cluster: str, group_id: str) -> None:
        self._root = root
        self._cluster = cluster
        self._group_id = group_id

    def marks(self, window: Window) -> Sequence[Mark]:
        """Return the marks, each with the text of its last change."""
        table, is_read = StoredTable(self._root, REBALANCES), self._where("record_time", window)
        columns = "record_time, offsets_topic_partition, offsets_topic_offset, kind, primary_cause"
        changes = [
            Change(timestamp_ms(row["record_time"]), _position(row), row["kind"], row["primary_cause"])
            for row in table.rows(f"SELECT {columns} FROM stored WHERE {is_read}")  # noqa: S608 - quoted
        ]
        found = marks(changes, window)
        sql = f"SELECT * FROM stored WHERE {is_read} AND {_positions(last.position for _, last in found)}"  # noqa: S608 - quoted
        texts = {_position(row): describe_rebalance(row) for row in table.rows(sql)} if found else {}
        return [replace(mark, text=texts.get(last.position, "")) for mark, last in found]

    def gaps(self, window: Window) -> Sequence[Gap]:
        """Return the commit gaps. Earlier versions of the monitor did not store the start of a commit gap."""
        is_read = self._where("record_time", window.extend(_GAP_LOOK_BACK_MS))
        return [
            Gap(
                rebalance_ms=timestamp_ms(row["record_time"]),
                from_ms=timestamp_ms(row["last_commit_time"]) if row.get("last_commit_time") else None,
                duration_ms=row["commit_gap_ms"],
                reason=row["unknown_reason"],
            )
            for row in StoredTable(self._root, COMMIT_GAPS).rows(f"SELECT * FROM stored WHERE {is_read}")  # noqa: S608 - quoted
        ]

    def conditions(self, window: Window) -> Sequence[ConditionRow]:
        """Return the starts and ends of conditions, also of conditions that started before the window."""
        columns = "condition, active, since_time, sampled_time, detail"
        is_read = self._where("sampled_time", window.extend(_CONDITION_LOOK_BACK_MS))
        sql = f"SELECT {columns} FROM stored WHERE {is_read}"  # noqa: S608 - quoted
        return [
            ConditionRow(
                row["condition"],
                row["active"],
                timestamp_ms(row["since_time"]),
                timestamp_ms(row["sampled_time"]),
                row["detail"] or "",
            )
            for row in StoredTable(self._root, GROUP_CONDITIONS).rows(sql)
        ]

    def generations(self, window: Window, earlier: Collection[date]) -> Sequence[Generation]:
        """Return the last generation of each column, and the last generation before the window.

        The generation before the window is searched only in rows of the dates `earlier` and of the dates in the window.
        """
        table, is_read = StoredTable(self._root, GROUP_GENERATIONS), self._where("record_time", window)
        columns = "record_time, offsets_topic_partition, offsets_topic_offset, state, members IS NULL AS is_unknown"
        order = "record_time, offsets_topic_offset"
        inside = table.rows(f"SELECT {columns} FROM stored WHERE {is_read} ORDER BY {order}")  # noqa: S608 - quoted
        picked = [column[-1] for column in window.by_column(inside, lambda row: timestamp_ms(row["record_time"]))]
        before = where({"group_id": self._group_id, "cluster": self._cluster}, {*earlier, *window.dates()})
        before += f" AND record_time < '{utc(window.from_ms).isoformat()}'"
        last = (
            f"SELECT {columns} FROM stored WHERE {before} ORDER BY record_time DESC, offsets_topic_offset DESC LIMIT 1"  # noqa: S608 - quoted
        )
        picked = [*table.rows(last), *picked]
        return _with_members(picked, table, f"({is_read} OR {before})")

    def lag(self, window: Window) -> tuple[LagPartitions, Iterator[LagRows]]:
        """Return facts about the partitions, and the rows of the window in pieces, from one version of the table."""
        table, before = StoredTable(self._root, GROUP_LAG), Window(window.from_ms - LOOK_BACK_MS, window.from_ms)
        last = table.rows(
            f"SELECT DISTINCT ON (topic, partition) {_LAG_COLUMNS} FROM stored"  # noqa: S608 - quoted
            f" WHERE {self._where('sampled_time', before)} ORDER BY topic, partition, sampled_time DESC"
        )
        inside = table.rows(
            "SELECT topic, partition, max(sampled_time) AS last_time FROM stored"  # noqa: S608 - quoted
            f" WHERE {self._where('sampled_time', window)} GROUP BY topic, partition"
        )
        minutes = table.rows(
            "SELECT date_trunc('minute', sampled_time) AS minute, count(*) AS rows FROM stored"  # noqa: S608 - quoted
            f" WHERE {self._where('sampled_time', window)} GROUP BY minute ORDER BY minute"
        )
        partitions = _lag_partitions(inside, last)
        windows = pieces([(timestamp_ms(row["minute"]), row["rows"]) for row in minutes], window)
        sql = f"SELECT {_LAG_COLUMNS} FROM stored WHERE "  # noqa: S608 - quoted
        queries = (sql + self._where("sampled_time", piece) for piece in windows)
        return partitions, (_lag_rows(table.query(query), partitions.with_rows) for query in queries)

    def measured_ms(self, window: Window) -> Sequence[int]:
        """Return the times in the window at which the monitor measured the cluster, sorted."""
        since, until = utc(window.from_ms), utc(window.to_ms)
        return [timestamp_ms(time) for time in sampled_times(self._root, GROUP_LAG, since, until, self._cluster)]

    def lag_rows_stored(self, window: Window) -> int:
        """Return an upper bound for the number of rows of all groups in the window."""
        return StoredTable(self._root, GROUP_LAG).rows_sampled_between(utc(window.from_ms), utc(window.to_ms))

    def _where(self, column: str, window: Window) -> str:
        condition = where({"group_id": self._group_id, "cluster": self._cluster}, window.dates())
        start, end = utc(window.from_ms).isoformat(), utc(window.to_ms).isoformat()
        return f"{condition} AND {column} >= '{start}' AND {column} <= '{end}'"


def _position(row: Mapping[str, Any]) -> tuple[int, int]:
    return row["offsets_topic_partition"], row["offsets_topic_offset"]


def _positions(positions: Iterable[tuple[int, int]]) -> str:
    return f"offsets_topic_offset IN ({', '.join(str(offset) for _, offset in positions)})"


def _with_members(picked: Sequence[Mapping[str, Any]], table: StoredTable, is_read: str) -> Sequence[Generation]:
    if not picked:
        return ()
    sql = (
        "SELECT record_time, offsets_topic_partition, offsets_topic_offset, m['member_id'] AS member_id,"  # noqa: S608 - quoted
        " m['group_instance_id'] AS group_instance_id, m['client_id'] AS client_id, m['client_host'] AS client_host,"
        " cardinality(m['assignment']) AS partitions"
        " FROM (SELECT record_time, offsets_topic_partition, offsets_topic_offset, unnest(members) AS m FROM stored"
        f" WHERE {is_read} AND {_positions(_position(row) for row in picked)})"
    )
    members: dict[tuple[object, tuple[int, int]], list[Holding]] = {}
    for row in table.rows(sql):
        name = member_name(row["client_id"] or "", row["client_host"] or "", row["group_instance_id"])
        one = Holding(row["member_id"], name, row["client_host"] or "", row["partitions"])
        members.setdefault((row["record_time"], _position(row)), []).append(one)
    generations = []
    for stored in picked:
        of_row: tuple[Holding, ...] | None = tuple(members.get((stored["record_time"], _position(stored)), ()))
        if stored["state"] in OVER:
            of_row = ()
        elif stored["is_unknown"] or stored["state"] == UNKNOWN:
            of_row = None
        generations.append(Generation(timestamp_ms(stored["record_time"]), of_row))
    return generations


def _lag_partitions(inside: Sequence[Mapping[str, Any]], last_before: Sequence[Mapping[str, Any]]) -> LagPartitions:
    inside = sorted(inside, key=_partition)
    ended = {_partition(row) for row in last_before if row["unknown_reason"] in END_REASONS}
    return LagPartitions(
        with_rows=[_partition(row) for row in inside],
        last_ms=np.array([timestamp_ms(row["last_time"]) for row in inside], dtype=np.int64),
        earlier={_partition(row): row["lag"] for row in last_before if _partition(row) not in ended},
        earlier_ages={_partition(row): (timestamp_ms(row["sampled_time"]), _age(row)) for row in last_before},
        ended_before=ended,
    )


def _lag_rows(rows: pa.Table, with_rows: Sequence[TopicPartition]) -> LagRows:
    """Convert rows of the table. `with_rows` is sorted."""
    topics = rows["topic"].cast(pa.string()).combine_chunks().dictionary_encode()
    numbers = {topic: number for number, topic in enumerate(sorted({topic for topic, _ in with_rows}))}
    keys = np.array([_key(numbers[topic], partition) for topic, partition in with_rows], dtype=np.int64)
    topic_numbers = np.array([numbers[topic] for topic in topics.dictionary.to_pylist()], dtype=np.int64)
    of_topic = topic_numbers[topics.indices.to_numpy(zero_copy_only=False)]
    partitions = rows["partition"].to_numpy().astype(np.int64)
    waits = pc.fill_null(pc.greater(rows["lag"], 0), fill_value=False)
    ages = pc.if_else(waits, rows["lag_seconds"].cast(pa.float64()), None)
    is_end = pc.is_in(rows["unknown_reason"].cast(pa.string()), value_set=pa.array(sorted(END_REASONS)))
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
    """Return the age in seconds of the oldest record that is not committed. NaN means no lag or an unknown age."""
    return float(row["lag_seconds"]) if row["lag"] and row["lag_seconds"] is not None else float("nan")
