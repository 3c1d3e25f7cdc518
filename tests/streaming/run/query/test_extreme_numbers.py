"""Property test: any number that a client can write goes through the batch, the sample and all outputs.

Only Spark, Kafka and the Delta log of a batch are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from streaming.combine.combiner import STATE_ROW_SCHEMA
from streaming.combine.own_partitions import OwnPartitions
from streaming.delta.tables import COMMIT_GAPS, Table
from streaming.prometheus.metrics import Exporter
from streaming.protocol.layouts import GROUP_METADATA, OFFSET_COMMIT
from streaming.run.query.batches import BatchSink
from streaming.run.query.prepare import Bootstrap
from streaming.spark.steps import CombineFunction, StateFunction
from tests.bench.encoder import record_value
from tests.streaming.http.answers import answer
from tests.streaming.log_records import (
    LogRecord,
    commit_key,
    commit_value,
    group_key,
    group_value,
    member_fields,
    other_group_key,
    other_group_value,
    record_batch,
    target_epoch_key,
    target_epoch_value,
)
from tests.streaming.page.test_application import ask, pages_of
from tests.streaming.run.samples.test_conditions import MINUTE_MS, START_MS, Monitor
from tests.streaming.spark.test_steps import chunks_of, state_of

LAST = 2**63 - 1
INT32 = st.sampled_from([0, -1, 1, 2, 2**31 - 1, -(2**31)])
INT64 = st.sampled_from([0, -1, 1, 2**31 - 1, 2**62, LAST, -(2**63)])
PARTITIONS = st.sampled_from([0, 1, 2, 2**31 - 1, -1, -(2**31)])
TIMES_MS = st.just(START_MS) | st.just(START_MS) | INT64
MAY_BE_NEGATIVE = {"rebalance_monitor_group_generation", "rebalance_monitor_clock_offset_seconds"}
"""A record can contain a negative generation, and a clock can be behind."""

Record = tuple[bytes, bytes | None]


class ReadingMonitor(Monitor):
    """A monitor that reads records as the query does."""

    def start(self) -> None:
        """Start with a new query."""
        super().start()
        self.stored: dict[tuple[str, str], tuple[int, bytes]] = {}
        self.new_rows: list[Mapping[Table, pa.Table]] = []
        self._sink = BatchSink(
            cluster="prod",
            monitor_state=self.monitor_state,
            committed_offsets=self.committed_offsets,
            tables=SimpleNamespace(append_batches=self._append),  # type: ignore[arg-type]
            files=None,  # type: ignore[arg-type]
            bootstrap=Bootstrap({}),
            clock=self.cluster.clock,
            on_end=lambda: None,
        )
        self._sink._positions = lambda _: {0: self.cluster.log_end}  # type: ignore[method-assign]
        self._sink._progress_file = SimpleNamespace(store=lambda: None)  # type: ignore[assignment]

    def _append(self, rows: Mapping[Table, pa.Table], _: int) -> list[Table]:
        self.new_rows.append(rows)
        return []

    def read_batch(self, records: Sequence[Record], times_ms: Sequence[int]) -> None:
        """Read the records in one batch."""
        log = [
            LogRecord(key, value, 0, self.cluster.log_end + number, at_ms)
            for number, ((key, value), at_ms) in enumerate(zip(records, times_ms, strict=True))
        ]
        self.cluster.log_end += len(log)
        payloads: dict[tuple[str, str], list[bytes]] = {}
        for batch in CombineFunction(OwnPartitions())([record_batch(log)]):
            for row in batch.to_pylist():
                payloads.setdefault((row["state_kind"], row["state_key"]), []).append(row["payload"])
        rows: list[dict[str, Any]] = []
        for (kind, key), of_key in payloads.items():
            state = state_of(self.stored.get((kind, key)))
            for frame in StateFunction(("range",))(("prod", kind, key), chunks_of(of_key), state):
                rows += frame.to_dict("records")
            self.stored[kind, key] = tuple(state.get)  # type: ignore[assignment]
        table = pa.Table.from_pylist(rows, schema=STATE_ROW_SCHEMA)
        self._sink(SimpleNamespace(toArrow=lambda: table), 0)  # type: ignore[arg-type]


@st.composite
def commits(draw: Callable[..., Any]) -> Record:
    """Draw a commit of `g`. Its value has every version."""
    key = commit_key("g", draw(st.sampled_from(["orders", "absent"])), draw(PARTITIONS))
    fields = {"offset": draw(INT64 | st.sampled_from([0, LAST])), "leaderEpoch": draw(INT32), "metadata": ""}
    times = {"commitTimestamp": draw(INT64), "expireTimestamp": draw(INT64)}
    return key, draw(st.none() | st.just(record_value(OFFSET_COMMIT, draw(st.integers(0, 4)), **fields, **times)))


@st.composite
def memberships(draw: Callable[..., Any]) -> Record:
    """Draw a record of a group: its metadata, its epoch or its tombstone."""
    number, group_type = draw(INT32), draw(st.sampled_from(["classic", "consumer", "share", "streams"]))
    if group_type == "classic":
        members = [
            {
                **member_fields(f"m{at}", held={"orders": [draw(PARTITIONS)]}),
                "rebalanceTimeout": draw(INT32),
                "sessionTimeout": draw(INT32),
            }
            for at in range(draw(st.integers(0, 2)))
        ]
        leader, protocol = ("m0", "range") if members else (None, None)
        value = record_value(
            GROUP_METADATA,
            3,
            protocolType="consumer",
            generation=number,
            protocol=protocol,
            leader=leader,
            currentStateTimestamp=draw(INT64),
            members=members,
        )
        return group_key("g"), draw(st.sampled_from([value, value, None]))
    group = f"g-{group_type}"
    return draw(
        st.sampled_from(
            [
                (other_group_key(group_type, group), other_group_value(group_type, number)),
                (target_epoch_key(group_type, group), target_epoch_value(group_type, number)),
                (other_group_key(group_type, group), None),
            ]
        )
    )


@st.composite
def generations_with_commits(draw: Callable[..., Any]) -> list[Record]:
    """Draw a generation of `g`, after which its members commit three partitions."""
    generation = group_value(draw(st.integers(1, 9)), [member_fields("m", held={"orders": [0, 1, 2]})])
    return [
        (group_key("g"), generation),
        *((commit_key("g", partition=at), commit_value(draw(st.sampled_from([0, LAST])))) for at in range(3)),
    ]


RECORDS = (commits() | memberships()).map(lambda record: [record]) | generations_with_commits()
BATCHES = st.lists(st.lists(st.tuples(RECORDS, TIMES_MS), min_size=1, max_size=6), max_size=3)


def check_outputs(monitor: ReadingMonitor) -> None:
    """Take two samples, then request every output."""
    monitor.pass_minutes(2, records_a_minute=100)
    monitor.monitor_state.put_readiness(ready=True, before=monitor.monitor_state.view().health)
    exporter = Exporter([("prod", monitor.monitor_state)], lambda: monitor.cluster.now_ms, MINUTE_MS)
    for family in text_string_to_metric_families(answer(exporter)):
        assert family.name in MAY_BE_NEGATIVE or all(one.value >= 0 for one in family.samples), family
    pages = pages_of(monitor.monitor_state, monitor.root / "tables", monitor.cluster.now_ms)
    for group in ("g", "g-consumer", "g-share", "g-streams"):
        for address in (f"/groups/{group}", f"/api/v1/groups/{group}"):
            assert ask(pages, address).status[:3] in {"200", "404"}


@settings(max_examples=25)
@given(BATCHES)
def test_no_number_that_a_client_can_write_stops_the_monitor(
    batches: Sequence[Sequence[tuple[Sequence[Record], int]]],
) -> None:
    """Law 4: hostile input. A failed batch is read again after every restart, so one record stopped the monitor."""
    with TemporaryDirectory() as root:
        monitor = ReadingMonitor(Path(root))
        for batch in batches:
            timed = [(record, at_ms) for records, at_ms in batch for record in records]
            monitor.read_batch([record for record, _ in timed], [at_ms for _, at_ms in timed])
            check_outputs(monitor)


def test_an_offset_that_no_log_has_is_shown_but_differences_to_it_are_unknown(tmp_path: Path) -> None:
    """A member committed 2^63 - 1 for three partitions, and after the rebalance 0. The query failed for ever.

    With two partitions, `kafka_consumergroup_current_offset_sum` was -2.
    """
    monitor = ReadingMonitor(tmp_path)

    def commit(offset: int) -> list[Record]:
        return [(commit_key("g", partition=partition), commit_value(offset)) for partition in range(3)]

    def generation(number: int) -> list[Record]:
        members = [member_fields(f"m{at}", held={"orders": [at]}) for at in range(number)]
        return [(group_key("g"), group_value(number, members))]

    for records in ([*generation(1), *commit(0)], commit(LAST)):
        monitor.read_batch(records, [monitor.cluster.now_ms] * len(records))
        check_outputs(monitor)
    exporter = Exporter([("prod", monitor.monitor_state)], lambda: monitor.cluster.now_ms, MINUTE_MS)
    families = {family.name: family.samples for family in text_string_to_metric_families(answer(exporter))}
    assert [one.value for one in families["kafka_consumergroup_current_offset_sum"]] == [3.0 * LAST]
    assert not families.get("rebalance_monitor_group_consumed_records_per_second")
    records = [*generation(2), *commit(0)]
    monitor.read_batch(records, [monitor.cluster.now_ms] * len(records))
    gaps = pa.concat_tables([rows[COMMIT_GAPS] for rows in monitor.new_rows])
    assert gaps.select(["generation_id", "recommitted_records"]).to_pylist()[-1] == {
        "generation_id": 2,
        "recommitted_records": None,
    }
    check_outputs(monitor)
