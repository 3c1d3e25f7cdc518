"""Writes synthetic tables of 30 days: generations, rebalances and verdicts of 10,000 groups, lag of 100 groups.

1. Every group has five members and ten partitions. In each generation, the last member of the generation before has
   left, and a new member has its partitions.
2. Each group has `generations_per_day` generations per day, in random order and at random times.
3. The first `lagging_groups` groups have a new lag of each partition every `lag_every_seconds`.
4. Each day is one append. So each table has one file per day, as after the maintenance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pyarrow as pa

from streaming.delta.on_disk import DeltaTables
from streaming.delta.rows import arrow_table
from streaming.delta.tables import ASSIGNMENT_DRIFT, GROUP_GENERATIONS, GROUP_LAG, REBALANCES, Table

CLUSTER = "bench"
MEMBERS, PARTITIONS = 5, 10

_DAY_SECONDS = 86_400
_TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class PastTables:
    """The size of the synthetic tables (rules 2 and 3). `last_day` is the UTC date of the newest rows."""

    last_day: date = date(2026, 11, 22)
    days: int = 30
    groups: int = 10_000
    generations_per_day: int = 4
    lagging_groups: int = 100
    lag_every_seconds: int = 60

    @property
    def first_time(self) -> datetime:
        """The start of the first day."""
        midnight = datetime.combine(self.last_day, datetime.min.time(), timezone.utc)
        return midnight - timedelta(days=self.days - 1)

    def write(self, folder: Path) -> None:
        """Write the tables into the folder."""
        tables = DeltaTables(str(folder))
        tables.open_all()
        templates = [_generation_templates(self.groups, parity) for parity in (0, 1)]
        for day in range(self.days):
            start = self.first_time + timedelta(days=day)
            for table, rows in _day_of_generations(self, templates, day, start):
                tables.append(table, rows)
            tables.append(GROUP_LAG, _day_of_lag(self, day, start))


def group_id(number: int) -> str:
    """Return the id of a group.

    >>> group_id(7)
    'bench-group-00007'
    """
    return f"bench-group-{number:05}"


def _generation_templates(groups: int, parity: int) -> dict[Table, pa.Table]:
    """Return one row of each table per group, without times and generations (rule 1)."""
    rows = {GROUP_GENERATIONS: _generation, REBALANCES: _rebalance, ASSIGNMENT_DRIFT: _drift}
    return {
        table: arrow_table(table, [{**_key(number), **columns(number, parity)} for number in range(groups)])
        for table, columns in rows.items()
    }


def _key(number: int) -> dict[str, object]:
    start = datetime(1970, 1, 1, tzinfo=timezone.utc)
    return {
        "cluster": CLUSTER,
        "date": start.date(),
        "offsets_topic_partition": number % 50,
        "offsets_topic_offset": 0,
        "record_time": start,
        "group_id": group_id(number),
        "generation_id": 0,
    }


def _generation(number: int, parity: int) -> dict[str, object]:
    members = [_member(number, place, parity) for place in range(MEMBERS)]
    return {
        "group_type": "classic",
        "state": "Stable",
        "protocol_type": "consumer",
        "protocol": "range",
        "protocol_source": "records",
        "leader": members[0]["member_id"],
        "members": members,
        "not_known": [],
        "rebalances_total": 1,
        "empty_transitions_total": 0,
        "incarnations": 1,
    }


def _rebalance(number: int, parity: int) -> dict[str, object]:
    gone, joined = (_member(number, MEMBERS - 1, each) for each in (1 - parity, parity))
    return {
        "kind": "rebalance",
        "primary_cause": "member_gone",
        "causes": ["member_gone", "member_joined"],
        "members": MEMBERS,
        "protocol": "range",
        "protocol_source": "records",
        "previous_protocol": "range",
        "changes": [_change(gone, "gone"), _change(joined, "joined")],
        "moved_partitions": 2,
        "fewest_moves": 2,
        "fewest_is_exact": True,
        "withheld_partitions": 0,
        "unowned": [],
        "not_known": [],
        "conditions": [],
        "rebalances_by_cause_total": [{"cause": "member_gone", "rebalances": 9}],
        "moved_partitions_total": [{"necessary": "true", "partitions": 9}],
    }


def _drift(_number: int, _parity: int) -> dict[str, object]:
    return {
        "strategy": "range",
        "is_group_strategy": True,
        "verdict": "match",
        "reason": "",
        "drift_partitions": 0,
        "misplaced": [],
        "violations": [],
        "assigned_by": "java",
        "evidence": [],
        "not_known": [],
    }


def _member(number: int, place: int, parity: int) -> dict[str, object]:
    name = f"{group_id(number)}-{place if place < MEMBERS - 1 else f'new-{parity}'}"
    partitions = [{"topic": f"topic-{number % 100}", "partition": 2 * place + index} for index in range(2)]
    return {
        "member_id": f"{name}-0b5c3b52-9d5e-4c3f-8f0e-1c2d3e4f5a6b",
        "client_id": name,
        "client_host": f"/10.0.{number % 250}.{place}",
        "subscription": [f"topic-{number % 100}"],
        "owned": [],
        "assignment": partitions,
        "target": partitions,
        "pending_revocation": [],
    }


def _change(member: dict[str, object], kind: str) -> dict[str, object]:
    partitions = member["target"]
    identity = {name: member[name] for name in ("member_id", "client_id", "client_host")}
    is_gone = kind == "gone"
    return {
        **identity,
        "changes": [kind],
        "revoked": partitions if is_gone else [],
        "assigned": [] if is_gone else partitions,
    }


def _day_of_generations(
    size: PastTables, templates: Sequence[dict[Table, pa.Table]], day: int, start: datetime
) -> Iterator[tuple[Table, pa.Table]]:
    """Yield the rows of one day of each table, in the order of their times (rule 2)."""
    random = np.random.default_rng(day)
    rounds = range(day * size.generations_per_day, (day + 1) * size.generations_per_day)
    seconds = np.sort(random.random(size.groups * len(rounds)) * _DAY_SECONDS)
    orders = [random.permutation(size.groups) for _ in rounds]
    offsets = np.arange(len(seconds)) + day * len(seconds)
    generation = np.repeat(np.array(rounds, dtype=np.int32) + 1, size.groups)
    for table in templates[0]:
        taken = [templates[number % 2][table].take(order) for number, order in zip(rounds, orders, strict=True)]
        columns = {
            "date": pa.array([start.date()] * len(seconds), pa.date32()),
            "record_time": _times(start, seconds),
            "offsets_topic_offset": pa.array(offsets, pa.int64()),
            "generation_id": pa.array(generation),
        }
        yield table, _with_columns(pa.concat_tables(taken).combine_chunks(), columns)


def _day_of_lag(size: PastTables, day: int, start: datetime) -> pa.Table:
    """Return the rows of one day of `group_lag` (rule 3)."""
    samples, keys = _DAY_SECONDS // size.lag_every_seconds, size.lagging_groups * PARTITIONS
    random = np.random.default_rng(1000 + day)
    count = samples * keys
    time_seconds = np.repeat(np.arange(samples) * size.lag_every_seconds + 7.0, keys)
    committed = np.repeat(np.arange(samples) + day * samples, keys) * 1000
    lag = random.integers(0, 5000, count)
    groups = pa.array([group_id(number) for number in range(size.lagging_groups) for _ in range(PARTITIONS)])
    topics = pa.array([f"topic-{number % 100}" for number in range(size.lagging_groups) for _ in range(PARTITIONS)])
    index = pa.array(np.tile(np.arange(keys), samples))
    time = _times(start, time_seconds)
    columns = {
        "cluster": pa.array([CLUSTER] * count),
        "date": pa.array([start.date()] * count, pa.date32()),
        "sampled_time": time,
        "group_id": groups.take(index),
        "topic": topics.take(index),
        "partition": pa.array(np.tile(np.arange(keys) % PARTITIONS, samples).astype(np.int32)),
        "committed_offset": pa.array(committed),
        "commit_time": time,
        "end_offset": pa.array(committed + lag),
        "log_start_offset": pa.array(np.zeros(count, dtype=np.int64)),
        "lag": pa.array(lag),
        "lag_seconds": pa.array(lag / 100),
        "lag_seconds_kind": pa.array(["exact"] * count),
        "within_seconds": pa.array(np.full(count, 0.5)),
        "consumed_records_per_second": pa.array(random.random(count).round(2)),
        "produced_records_per_second": pa.array(random.random(count).round(2)),
    }
    nulls = {field.name: pa.nulls(count, field.type) for field in GROUP_LAG.schema if field.name not in columns}
    return pa.table([{**columns, **nulls}[name] for name in GROUP_LAG.schema.names], schema=GROUP_LAG.schema)


def _times(start: datetime, seconds: np.ndarray) -> pa.Array:
    start_us = int(start.timestamp()) * 1_000_000
    return pa.array((seconds * 1_000_000).astype(np.int64) + start_us, pa.int64()).cast(_TIME)


def _with_columns(rows: pa.Table, columns: dict[str, pa.Array]) -> pa.Table:
    for name, values in columns.items():
        at = rows.column_names.index(name)
        rows = rows.set_column(at, rows.schema.field(at), values)
    return rows
