"""Tests of the table rows of batches, decode failures and lag, for normal and for extreme input."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from datetime import date, datetime, timezone

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import assignor_named
from streaming.combine.gaps import CommitGap
from streaming.combine.partition_state import DecodeFailure, FailureSummary, PartitionSnapshot
from streaming.delta import rows as rows_module
from streaming.delta.cells import Row, utc
from streaming.delta.fairness_rows import work_rows
from streaming.delta.rows import arrow_table, commit_gap_rows, lag_rows, quarantine_rows
from streaming.delta.tables import (
    ASSIGNMENT_DRIFT,
    ASSIGNMENT_IMBALANCE,
    COMMIT_GAPS,
    GROUP_GENERATIONS,
    GROUP_LAG,
    PARTITION_STATUS,
    QUARANTINE,
    REBALANCES,
    TABLES,
    WHAT_IF,
)
from streaming.evaluation.fairness.imbalance import LAG, Imbalance
from streaming.evaluation.group_update import GroupState, GroupUpdate, apply_batch
from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample
from streaming.evaluation.rebalances.failed_rebalances import decide_skips
from streaming.events import GroupEvent, Position
from streaming.group.snapshot import GroupSnapshot
from tests.streaming.group.test_advance import histories
from tests.streaming.groups import advanced, epoch, member, sampled, tombstoned, written
from tests.streaming.lags import evaluated_lag
from tests.streaming.polled.answers import answered, classic, classic_member
from tests.streaming.table_rows import update_rows
from tests.table_reference import describe_tables

STRATEGIES = (assignor_named("range"), assignor_named("roundrobin"))
INT64 = st.integers(-(2**63), 2**63 - 1)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def update_of(events: list[GroupEvent], topics: GroupEvent | None = None) -> GroupUpdate:
    """Return the update of a batch with the events. With `topics`, a second batch adds topic metadata."""
    record = GroupState(GroupSnapshot("g"))
    update = apply_batch(record, events, STRATEGIES)
    if topics is None:
        return update
    known = apply_batch(update.record, [topics], STRATEGIES)
    return GroupUpdate(known.record, update.history, (*update.evaluations, *known.evaluations))


def test_rows_of_a_polled_group_have_null_for_unknown_values_and_list_them() -> None:
    """Rule 2: an unknown generation is never -1 or 0."""
    answer = answered(7, classic(classic_member("a", [0])))
    rows = update_rows("prod", [update_of([answer], sampled(86_400, t=1))], {})
    (generation_row,) = arrow_table(GROUP_GENERATIONS, rows[GROUP_GENERATIONS]).to_pylist()
    assert (generation_row["offsets_topic_partition"], generation_row["offsets_topic_offset"]) == (-1, 7)
    assert [generation_row[name] for name in ("generation_id", "leader", "rebalances_failed_total")] == [None] * 3
    drift = arrow_table(ASSIGNMENT_DRIFT, rows[ASSIGNMENT_DRIFT]).to_pylist()
    shares = arrow_table(ASSIGNMENT_IMBALANCE, rows[ASSIGNMENT_IMBALANCE]).to_pylist()
    assert drift
    assert shares
    for row in (generation_row, *drift, *shares):
        assert row["generation_id"] is None
        assert {"generation_id", "leader", "rebalances_between_polls"} <= set(row["not_known"])


def test_a_generation_is_a_row_with_its_members_sorted() -> None:
    """The coordinator writes members in the order of a hash map. Sorted members make tables of two runs equal."""
    members = [member("b", {"orders": [1]}, instance_id="i"), member("a", {"orders": [0]})]
    rows = update_rows("prod", [update_of([written(86_400, 7, members)])], {})[GROUP_GENERATIONS]
    (row,) = arrow_table(GROUP_GENERATIONS, rows).to_pylist()
    assert [one["member_id"] for one in row["members"]] == ["a", "b"]
    assert row["members"][1] == {
        "member_id": "b",
        "group_instance_id": "i",
        "client_id": "client-b",
        "client_host": "/127.0.0.1",
        "rack_id": None,
        "subscription": ["orders"],
        "subscribed_regex": None,
        "member_epoch": None,
        "owned": [],
        "assignment": [{"topic": "orders", "topic_id": None, "partition": 1}],
        "target": [{"topic": "orders", "topic_id": None, "partition": 1}],
        "pending_revocation": [],
    }
    assert (row["cluster"], row["group_id"], row["state"], row["generation_id"]) == ("prod", "g", "Stable", 7)
    assert (row["offsets_topic_partition"], row["offsets_topic_offset"], row["leader"], row["protocol"]) == (
        0,
        86_400,
        "b",
        "range",
    )
    assert (row["date"], row["record_time"]) == (date(1970, 1, 2), datetime(1970, 1, 2, tzinfo=timezone.utc))


def test_every_record_of_a_batch_is_a_row_with_the_totals_at_this_record() -> None:
    update = update_of([written(1, 1), written(2, 2), tombstoned(3), written(4, 1), epoch(5)])
    rows = arrow_table(GROUP_GENERATIONS, update_rows("c", [update], {})[GROUP_GENERATIONS]).to_pylist()
    shown = [(row["offsets_topic_offset"], row["state"], row["rebalances_total"], row["incarnations"]) for row in rows]
    assert shown == [
        (1, "Stable", 0, 1),
        (2, "Stable", 1, 1),
        (3, "Dead", 1, 1),
        (4, "Stable", 1, 2),
        (5, "Empty", 1, 3),
    ]
    assert [row["members"] is None for row in rows] == [False, False, True, False, False]


@pytest.mark.parametrize(("last_missing", "failed"), [(-1, 2), (15, 0)])
def test_failed_rebalances_that_the_log_proves_count_from_their_row_on(last_missing: int, failed: int) -> None:
    update = update_of([written(10, 1), written(20, 4), tombstoned(30)])
    decisions = decide_skips({}, update.history, {0: PartitionSnapshot(0, 30, last_missing)})
    rows = update_rows("c", [update], decisions)[GROUP_GENERATIONS]
    assert [row["rebalances_failed_total"] for row in rows] == [0, failed, failed], "the total never decreases"


def test_a_verdict_is_one_row_per_strategy_and_one_row_per_share() -> None:
    update = update_of([written(10, 3, [member("m", {"orders": [1]})])], sampled(11_000, orders=2))
    rows = update_rows("c", [update], {})
    drifts = arrow_table(ASSIGNMENT_DRIFT, rows[ASSIGNMENT_DRIFT]).to_pylist()
    assert [(row["strategy"], row["is_group_strategy"], row["verdict"], row["drift_partitions"]) for row in drifts] == [
        ("range", True, "drift", 1),
        ("roundrobin", False, "differs", 1),
    ]
    assert drifts[0]["misplaced"] == [{"topic": "orders", "partition": 0, "actual_members": [], "expected_member": "m"}]
    assert drifts[0]["metadata_sampled_time"] == datetime(1970, 1, 1, 0, 0, 11, tzinfo=timezone.utc)
    shares = arrow_table(ASSIGNMENT_IMBALANCE, rows[ASSIGNMENT_IMBALANCE]).to_pylist()
    assert [
        (row["scope"], row["topic"], row["total"], row["max_to_mean_ratio"], row["score_reason"]) for row in shares
    ] == [
        ("member", None, 1, 1.0, "partitions_unassigned"),
        ("host", None, 1, 1.0, "partitions_unassigned"),
        ("topic", "orders", 1, 1.0, "partitions_unassigned"),
    ]
    assert {(row["measure"], row["sampled_time"], row["topic_skew"]) for row in shares} == {("partitions", None, None)}
    assert rows[WHAT_IF] == [], "a partition without an owner cannot count as moved"
    assert {row["offsets_topic_offset"] for row in drifts + shares} == {10}


SKEWED = [
    member("a", {"t": [0], "u": [0]}, ["t", "u"]),
    member("b", {"t": [1], "u": [1]}, ["t", "u"]),
    member("c", {}, ["t", "u"]),
    member("d", {}, ["t", "u"]),
]
"""Range's assignment of two topics with two partitions each: the same two members get partitions of both topics."""


def test_a_topic_skew_is_in_the_row_of_the_group_and_what_if_shows_the_remedy() -> None:
    strategies = (assignor_named("range"), assignor_named("sticky"))
    update = apply_batch(GroupState(GroupSnapshot("g")), [written(10, 3, SKEWED)], strategies)
    update = apply_batch(update.record, [sampled(99_000, t=2, u=2)], strategies)
    rows = update_rows("prod", [update], {})
    shares = arrow_table(ASSIGNMENT_IMBALANCE, rows[ASSIGNMENT_IMBALANCE]).to_pylist()
    assert [(row["scope"], row["score"], row["excess"], row["idle"], row["topic_skew"]) for row in shares] == [
        ("member", pytest.approx(100 / 3), 1, 2, {"members": ["a", "b"], "topics": 2, "surplus_partitions": 2}),
        ("host", 100, 0, 0, None),
        ("topic", 100, 0, 2, None),
        ("topic", 100, 0, 2, None),
    ]
    found = arrow_table(WHAT_IF, rows[WHAT_IF]).to_pylist()
    assert [
        (row["strategy"], row["is_group_strategy"], row["moved_partitions"], row["rounds"]) for row in found[:3]
    ] == [
        ("(today)", False, 0, 0),
        ("range", True, 0, 1),
        ("sticky", False, 2, 1),
    ]
    assert [(row["change"], row["strategy"]) for row in found if row["removes_topic_skew"]] == [("as it is", "sticky")]
    assert {(row["offsets_topic_offset"], row["generation_id"], row["failure"]) for row in found} == {(10, 3, "")}


def test_a_row_of_work_has_the_position_of_its_assignment_and_the_time_of_its_sample() -> None:
    """The date is the day of the sample. Otherwise, retention would delete rows of groups without rebalances."""
    update = update_of([written(10, 3, [member("m", {"orders": [0]})])], sampled(99_000, orders=1))
    lag = Imbalance(measure=LAG, scope="member", unknown_reason="lag_unknown", unknown_partitions=1)
    (evaluation,) = update.evaluations
    rows = list(work_rows("prod", "g", evaluation, 3 * 86_400_000, [lag]))
    (row,) = arrow_table(ASSIGNMENT_IMBALANCE, rows).to_pylist()
    assert (row["date"], row["sampled_time"], row["record_time"]) == (
        date(1970, 1, 4),
        datetime(1970, 1, 4, tzinfo=timezone.utc),
        datetime(1970, 1, 1, 0, 0, 10, tzinfo=timezone.utc),
    )
    assert (row["measure"], row["offsets_topic_offset"], row["unknown_reason"], row["total"]) == (
        "lag",
        10,
        "lag_unknown",
        None,
    )


def test_a_rebalance_is_a_row_with_its_members_causes_and_totals() -> None:
    """Static member `a` rejoined with a new id. Member `c` left, and `b` took its partition."""
    before = [member("a", {"orders": [0]}, instance_id="i"), member("c", {"orders": [1]})]
    after = [member("a2", {"orders": [0]}, instance_id="i"), member("b", {"orders": [1]})]
    rows = update_rows("prod", [update_of([written(10, 3, before), written(11, 5, after)])], {})[REBALANCES]
    first, row = arrow_table(REBALANCES, rows).to_pylist()
    assert (first["kind"], first["primary_cause"], first["causes"], first["moved_partitions"]) == (
        "first_seen",
        None,
        [],
        None,
    )
    assert (row["offsets_topic_offset"], row["generation_id"], row["skipped_generations"]) == (11, 5, 1)
    assert (row["primary_cause"], row["causes"]) == ("member_gone", ["member_gone", "member_joined"])
    assert (row["moved_partitions"], row["fewest_moves"], row["fewest_is_exact"]) == (1, 1, True)
    moved = [{"topic": "orders", "partition": 1}]
    assert [(one["member_id"], one["changes"], one["revoked"], one["assigned"]) for one in row["changes"]] == [
        ("b", ["joined"], [], moved),
        ("c", ["gone"], moved, []),
        ("a2", ["rejoined"], [], []),
    ]
    assert row["rebalances_by_cause_total"] == [{"cause": "member_gone", "rebalances": 1}]
    assert row["moved_partitions_total"] == [{"necessary": "true", "partitions": 1}]


def test_a_pending_verdict_has_no_row() -> None:
    rows = update_rows("c", [update_of([written(10, 3)])], {})
    assert (rows[ASSIGNMENT_DRIFT], rows[ASSIGNMENT_IMBALANCE]) == ([], [])


@given(st.lists(st.tuples(INT64, st.none() | st.binary(), st.none() | st.binary()), max_size=5))
def test_any_record_with_a_decode_failure_has_a_row_with_every_byte(
    records: list[tuple[int, bytes | None, bytes | None]],
) -> None:
    decode_failures = [
        DecodeFailure(0, at, timestamp, key, value, "truncated", None)
        for at, (timestamp, key, value) in enumerate(records)
    ]
    (table, rows), *_ = quarantine_rows("c", decode_failures).items()
    assert table is QUARANTINE
    stored = arrow_table(QUARANTINE, rows).to_pylist()
    assert [(row["key"], row["value"]) for row in stored] == [(key, value) for _, key, value in records]


def test_only_some_of_the_rows_exist_in_python_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of a batch existed all at once. 100 generations of 1,000 members needed 1.4 GB in the driver."""
    monkeypatch.setattr(rows_module, "CELLS_PER_PART", 50)

    class Counted(dict[str, object]):
        pass

    rows: list[weakref.ref[Counted]] = []
    most_alive = 0

    def made_rows() -> Iterator[Row]:
        nonlocal most_alive
        for at in range(100):
            row = Counted(offsets_topic_offset=at, reason="truncated")
            rows.append(weakref.ref(row))
            most_alive = max(most_alive, sum(one() is not None for one in rows))
            yield row

    stored = arrow_table(QUARANTINE, made_rows())
    assert stored["offsets_topic_offset"].to_pylist() == list(range(100))
    assert most_alive < 60
    assert arrow_table(QUARANTINE, ()).schema == QUARANTINE.schema


def test_the_records_of_a_summary_have_one_row_at_the_offset_of_the_last_record() -> None:
    """A new checkpoint writes no row for an offset that has one. At the first offset, later records would get none."""
    kept = DecodeFailure(3, 5, 0, b"k", b"v", "truncated", "key.group", 1, 70_000)
    summary = FailureSummary("missing_key", 12, 6, Position(3, 20, 1_000))
    rows = arrow_table(QUARANTINE, quarantine_rows("c", [kept], [summary])[QUARANTINE]).to_pylist()
    assert [[row[name] for name in _OF_A_DECODE_FAILURE] for row in rows] == [
        [5, b"k", b"v", "truncated", "key.group", 1, 70_000, 1, 5],
        [20, None, None, "missing_key", None, None, None, 12, 6],
    ]


_OF_A_DECODE_FAILURE = (
    "offsets_topic_offset",
    "key",
    "value",
    "reason",
    "field",
    "key_bytes",
    "value_bytes",
    "records",
    "first_offset",
)


@given(histories())
def test_rows_of_any_history_fit_their_tables(events: list[GroupEvent]) -> None:
    for table, rows in update_rows("c", [update_of(events, sampled(5, orders=1))], {}).items():
        assert arrow_table(table, rows).num_rows == len(rows)


@pytest.mark.parametrize(
    ("timestamp_ms", "time", "why"),
    [
        (0, EPOCH, "the epoch"),
        (1_700_000_000_123, datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=timezone.utc), "milliseconds are kept"),
        (-1, EPOCH, "Kafka's NO_TIMESTAMP"),
        (-(2**63), EPOCH, "before the first date of the calendar"),
        (2**63 - 1, datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc), "after the last date of the calendar"),
    ],
)
def test_a_time_outside_the_calendar_becomes_its_first_or_last_time(
    timestamp_ms: int, time: datetime, why: str
) -> None:
    assert utc(timestamp_ms) == time, why


@given(st.integers(0, 253_402_300_799_000))
def test_no_millisecond_is_rounded_away(timestamp_ms: int) -> None:
    """Times are never converted to float, which would lose milliseconds far from 1970."""
    assert (utc(timestamp_ms) - EPOCH).total_seconds() == pytest.approx(timestamp_ms / 1000, abs=1e-4)
    assert utc(timestamp_ms).microsecond == timestamp_ms % 1000 * 1000


@given(st.lists(INT64, max_size=5))
def test_lag_has_rows_for_any_timestamp_of_a_commit(timestamps: list[int]) -> None:
    """One commit with an extreme timestamp made every later sample fail, and the monitor was never ready again."""
    count = len(timestamps)
    row = {"group_id": "g", "topic": "t", "partition": 0, "committed_offset": 5}
    committed = [{**row, "commit_timestamp_ms": timestamp} for timestamp in timestamps]
    commits = pa.Table.from_pylist(committed, schema=pa.schema(list(LAG_SCHEMA)[:5]))
    evaluated = evaluated_lag(commits, ClusterSample(86_400_000, end_offsets={("t", 0): 7})).partitions
    rows = lag_rows(GROUP_LAG, "c", 86_400_000, evaluated)
    assert rows.schema == GROUP_LAG.schema
    assert lag_rows(PARTITION_STATUS, "c", 86_400_000, evaluated).schema == PARTITION_STATUS.schema
    assert rows["lag"].to_pylist() == [2] * count
    assert rows["commit_time"].to_pylist() == [utc(timestamp) for timestamp in timestamps]
    assert set(rows["date"].to_pylist()) <= {date(1970, 1, 2)}
    assert rows["log_start_offset"].null_count == count


def test_a_commit_gap_is_a_row_at_the_position_of_its_rebalance_with_null_for_unknown_values() -> None:
    gap = CommitGap(
        "g", Position(3, 17, 1_000), 5, None, "no_commit_after", None, None, None, 2, 5_000, 40, "round_passed", 500
    )
    (row,) = arrow_table(COMMIT_GAPS, commit_gap_rows("prod", [gap])[COMMIT_GAPS]).to_pylist()
    assert (row["cluster"], row["offsets_topic_partition"], row["offsets_topic_offset"]) == ("prod", 3, 17)
    assert row["record_time"] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc)
    values = {name: row[name] for name in COMMIT_GAPS.schema.names[5:]}
    assert values == {
        "group_id": "g",
        "generation_id": 5,
        "commit_gap_ms": None,
        "unknown_reason": "no_commit_after",
        "worst_topic": None,
        "worst_partition": None,
        "worst_gap_ms": None,
        "silent_partitions": 2,
        "recommitted_records": 40,
        "usual_interval_ms": 5_000,
        "closed_by": "round_passed",
        "last_commit_time": datetime(1970, 1, 1, 0, 0, 0, 500_000, tzinfo=timezone.utc),
    }


def test_the_table_reference_describes_every_table_and_column() -> None:
    reference = "\n".join(describe_tables())
    for table in TABLES:
        assert f"## `{table.name}`" in reference
        for field in table.schema:
            assert field.metadata[b"comment"], f"{table.name}.{field.name} has a description"
            assert f"| `{field.name}` |" in reference


def test_a_snapshot_without_a_record_is_an_error() -> None:
    update = GroupUpdate(GroupState(advanced([])), (GroupSnapshot("g"),))
    with pytest.raises(ValueError, match="must have the position of a record"):
        update_rows("c", [update], {})
