"""Tests of loss by retention: the count, its start time, and the time until the next loss, on stepwise log starts."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.lag.lag import (
    LAG_SCHEMA,
    MAYBE_ONLY_MARKERS,
    NO_END_OFFSET,
    ClusterSample,
    LagReport,
    lag_report,
)
from streaming.evaluation.lag.retention.lost_records import (
    LOG_START_POINTS,
    RATE_WINDOW_MS,
    RETENTION_SCHEMA,
    Loss,
    Losses,
    losses,
    retention,
)
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets

Point = tuple[int, int]
"""Log start, and the time of its sample in seconds."""
PARTITION = ("orders", 0)
END = 1_000_000
STAIRS = [(0, 0), (0, 590), (1_000, 600), (1_000, 1_190), (2_000, 1_200), (2_000, 1_500)]
"""The log start moves by 1000 every 600 s, last at 1200 s. The present is 1500 s."""


def sampled(points: Sequence[Point], limit: int = LOG_START_POINTS) -> SampledOffsets:
    """Return the sampled log start offsets of one partition. `points` contains the oldest sample first."""
    starts = SampledOffsets(limit)
    for log_start, second in points:
        starts.add({PARTITION: log_start}, second * 1000)
    return starts


def answer(  # noqa: PLR0913 - the inputs of the result
    starts: SampledOffsets,
    newest: Point,
    committed: int,
    *,
    end: int | None = END,
    commit_second: int = 0,
    earlier: Losses = MappingProxyType({}),
    left_by_time: float | None = None,
    only_by_time: bool = False,
    commits_read_second: int | None = None,
) -> dict[str, Any]:
    """Return the result for one commit at the newest point's time. A negative `commits_read_second` means unknown."""
    columns = [["g"], ["orders"], [0], [committed], [commit_second * 1000]]
    commits = pa.table([pa.array(column) for column in columns], names=LAG_SCHEMA.names[:5])
    end_offsets = {} if end is None else {PARTITION: end}
    sample = ClusterSample(newest[1] * 1000, {}, end_offsets, {PARTITION: newest[0]})
    left = pa.chunked_array([pa.array([left_by_time], pa.float64())])
    read_ms = None
    if commits_read_second is not None:
        read_ms = pa.array([commits_read_second * 1000 if commits_read_second >= 0 else None], pa.int64())
    only = np.array([only_by_time])
    table = retention(lag_report(commits, sample), starts, earlier, left, only, read_ms)
    assert table.schema == RETENTION_SCHEMA
    (row,) = table.to_pylist()
    return dict(row)


@pytest.mark.parametrize(
    ("points", "committed", "commit_second", "lost", "since_second", "kind", "why"),
    [
        (STAIRS, 2_000, 0, 0, None, None, "the record at the log start still exists"),
        (STAIRS, 1_999, 0, 1, 1_200, "exact", "one record was lost, at the second move"),
        (STAIRS, 500, 0, 1_500, 600, "exact", "lost since the first move"),
        (STAIRS, 500, 700, 1_500, 700, "exact", "the record was already gone at the commit: lost since the commit"),
        (STAIRS, 500, 9_999, 1_500, 1_500, "exact", "a commit with a future time counts as now"),
        ([(2_000, 100), (2_000, 900)], 500, 0, 1_500, 100, "at_least", "the loss is already in the oldest sample"),
        ([(2_000, 100), (2_000, 900)], 500, 200, 1_500, 200, "exact", "the commit is later than the oldest sample"),
        ([(2_000, 100), (2_000, 900)], 500, 100, 1_500, 100, "exact", "or with it"),
        (
            [(9_000, 0), (10, 100), (20, 200)],
            15,
            0,
            5,
            200,
            "exact",
            "the topic was recreated: earlier points do not count",
        ),
    ],
)
def test_records_are_lost_since_the_first_sample_that_shows_it(  # noqa: PLR0913, PLR0917 - a row of the table
    points: list[Point],
    committed: int,
    commit_second: int,
    lost: int,
    since_second: int | None,
    kind: str | None,
    why: str,
) -> None:
    row = answer(sampled(points), points[-1], committed, commit_second=commit_second)
    assert row["records_lost"] == lost, why
    assert row["lost_since_ms"] == (None if since_second is None else since_second * 1000), why
    assert row["lost_since_kind"] == kind, why


def test_the_start_time_of_a_loss_stays_while_the_loss_continues() -> None:
    """Points are thinned as they age, and a group can commit while it is behind. The start time stays."""
    first = answer(sampled(STAIRS), STAIRS[-1], 500)
    earlier = {("g", *PARTITION): Loss(first["lost_since_ms"], first["lost_since_kind"], 500)}
    later = [*STAIRS, (3_000, 1_800)]
    assert answer(sampled(later), later[-1], 700, commit_second=1_700, earlier=earlier)["lost_since_ms"] == 600_000
    caught_up = answer(sampled(later), later[-1], 3_000, earlier=earlier)
    assert (caught_up["lost_since_ms"], caught_up["lost_since_kind"]) == (None, None)
    again = answer(sampled(later), later[-1], 2_999)
    assert again["lost_since_ms"] == 1_800_000


@pytest.mark.parametrize(
    ("committed", "read_second", "lost", "why"),
    [
        (1_500, 1_500, 500, "the commits are as new as the present log start offset"),
        (1_500, 1_200, 500, "the commits are as new as the last move"),
        (
            1_500,
            1_199,
            0,
            "the group may have committed 2000 before the move. At the previous sample, nothing was lost",
        ),
        (500, 1_199, 500, "the loss of the first move is proven, the loss of the second move is not"),
        (1_500, -1, None, "it is unknown which log start offsets are older than the commits"),
        (2_000, -1, 0, "the record at the log start offset still exists, and a newer commit cannot be lower"),
    ],
)
def test_only_commits_as_new_as_the_log_start_prove_a_loss(
    committed: int, read_second: int, lost: int | None, why: str
) -> None:
    """Kafka Streams deletes the records of repartition topics up to the commit every 30 s. Each deletion was a loss."""
    row = answer(sampled(STAIRS), STAIRS[-1], committed, commits_read_second=read_second)
    assert row["records_lost"] == lost, why
    assert (row["lost_since_ms"] is not None) == bool(lost), why


def test_an_old_commit_does_not_continue_a_loss_to_a_newer_log_start() -> None:
    """After a restart, the monitor has the old commit and the present log start. The group may have read everything."""
    earlier = {("g", *PARTITION): Loss(600_000, "exact", 500)}
    row = answer(sampled(STAIRS), STAIRS[-1], 500, earlier=earlier, commits_read_second=-1)
    assert set(row.values()) == {None}


def few_lost(earlier: Losses, reason: str | None = None) -> dict[str, Any]:
    """Return the result for a group that lost five offsets, if no fetch shows a record there."""
    starts = sampled([(0, 0), (505, 600)])
    commits = pa.table([["g"], ["orders"], [0], [500], [0]], names=LAG_SCHEMA.names[:5])
    report = lag_report(commits, ClusterSample(600_000, {}, {PARTITION: END}, {PARTITION: 505}))
    rows = {"record_offset": None, "unknown_reason": reason, "lag": None if reason else END - 500}
    columns = [
        pa.array([rows[name]], column.type) if name in rows else column
        for name, column in zip(report.partitions.column_names, report.partitions.columns, strict=True)
    ]
    table = pa.table(columns, schema=report.partitions.schema)
    (row,) = retention(LagReport(600_000, table), starts, earlier).to_pylist()
    return dict(row)


@pytest.mark.parametrize(
    ("earlier_offset", "reason", "lost", "why"),
    [
        (None, None, None, "five offsets may be transaction markers, whose deletion is no loss"),
        (500, None, 5, "the loss was known before the restart, and the group has not moved"),
        (
            500,
            MAYBE_ONLY_MARKERS,
            5,
            "the lag is doubted, because the deleted records cannot be fetched. They are lost",
        ),
        (500, NO_END_OFFSET, None, "the partition has no leader: nothing is known now"),
        (490, None, None, "the group committed: the offsets after its new commit may be markers"),
    ],
)
def test_a_known_loss_of_a_few_records_stays_known(
    earlier_offset: int | None, reason: str | None, lost: int | None, why: str
) -> None:
    """A fetch had shown the records. Retention deleted them, so no later fetch can show them: the alert resolved."""
    earlier = {} if earlier_offset is None else {("g", *PARTITION): Loss(300_000, "exact", earlier_offset)}
    row = few_lost(earlier, reason)
    assert row["records_lost"] == lost, why
    assert row["lost_since_ms"] == (300_000 if lost else None), why


def test_a_loss_outlasts_samples_in_which_it_is_unknown() -> None:
    """A partition without a leader has no log start. Its loss began anew when the leader returned."""
    loss = Loss(600_000, "exact", 500)
    lost = {"group_id": "g", "topic": "orders", "partition": 0, "committed_offset": 500}
    schema = pa.schema([("records_lost", pa.int64()), ("lost_since_ms", pa.int64()), ("lost_since_kind", pa.string())])

    def rows(*values: object) -> pa.Table:
        return pa.table(
            {**{name: [value] for name, value in lost.items()}}
            | {field.name: pa.array([value], field.type) for field, value in zip(schema, values, strict=True)}
        )

    key = ("g", *PARTITION)
    known = losses(rows(9, 600_000, "exact"))
    assert known == {key: loss}
    assert losses(rows(None, None, None), known) == {key: loss}, "unknown: it stays"
    assert losses(rows(0, None, None), known) == {}, "the group committed past the loss: it ends"


@pytest.mark.parametrize(
    ("points", "committed", "left", "expected", "why"),
    [
        ([(0, 0), (0, 1_500)], 500, 900.0, (900.0, "estimate"), "a quiet topic: the log start never moved"),
        ([(0, 0), (0, 1_500)], 500, 0.0, (0.0, "estimate"), "the record is as old as the retention"),
        (STAIRS, 4_500, 900.0, (900.0, "estimate"), "both are known: the smaller estimate applies"),
        (STAIRS, 4_500, 9_000.0, (1_200.0, "estimate"), "retention.bytes deletes first"),
        (STAIRS, 12_501, 9_000.0, (9_000.0, "estimate"), "the rate gives only a bound"),
        (STAIRS, 1_999, 9_000.0, (0.0, "estimate"), "records are already lost"),
        (STAIRS, END, 9_000.0, (None, None), "nothing is unread"),
    ],
)
def test_retention_by_time_limits_the_time_left(
    points: list[Point], committed: int, left: float, expected: tuple[float | None, str | None], why: str
) -> None:
    """Before this rule, a quiet topic lost records without a warning, because a rate needs two moves in a day."""
    row = answer(sampled(points), points[-1], committed, left_by_time=left)
    assert (row["seconds_until_lost"], row["seconds_until_lost_kind"]) == expected, why


@pytest.mark.parametrize(
    ("committed", "left", "expected", "why"),
    [
        (
            4_500,
            9_000.0,
            (9_000.0, "estimate"),
            "the rate would be 1200 s, but no rule deletes the record before 9000 s",
        ),
        (4_500, None, (None, None), "no retention: the moves were requests to delete records"),
        (1_999, None, (0.0, "estimate"), "records are already lost"),
        (END, 9_000.0, (None, None), "nothing is unread"),
    ],
)
def test_if_only_time_deletes_records_the_moves_of_the_log_start_predict_nothing(
    committed: int, left: float | None, expected: tuple[float | None, str | None], why: str
) -> None:
    """A topic got its records in one hour per day. While retention deleted an old hour, a critical alert fired."""
    row = answer(sampled(STAIRS), STAIRS[-1], committed, left_by_time=left, only_by_time=True)
    assert (row["seconds_until_lost"], row["seconds_until_lost_kind"]) == expected, why


@pytest.mark.parametrize(
    ("hours", "expected"),
    [(0.1, 24_838.5), (0.16, 24_622.5), (0.2, None), (2, None), (6, None), (12, None), (23, None)],
)
def test_the_rate_ends_when_the_next_move_is_overdue(hours: float, expected: float | None) -> None:
    """Retention deleted one segment per 5 minutes for an hour, then nothing. The predicted loss never came.

    The settings of the topic are unknown. For one day, the rate stayed valid and the time left became 0.
    """
    last = 12 * 300
    starts = sampled([(1_000 * step, 300 * step) for step in range(13)])
    newest = (12_000, last + round(hours * 3_600))
    starts.add({PARTITION: newest[0]}, newest[1] * 1000)
    end = 96_000
    row = answer(starts, newest, end - 5, end=end)
    assert row["seconds_until_lost"] == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("points", "committed", "expected", "why"),
    [
        (
            STAIRS,
            4_500,
            (1_200.0, "estimate"),
            "in the worked example, until 2700 s; the moves reach this offset at 3000 s",
        ),
        (STAIRS, 5_000, (1_500.0, "estimate"), "exactly at a move: 3000 s"),
        (STAIRS, 2_400, (0.0, "estimate"), "the next move can delete the record, and the move is due"),
        (STAIRS, 1_999, (0.0, "estimate"), "the record is already lost"),
        (
            STAIRS,
            12_501,
            (6_000.0, "at_least"),
            "a rate is valid for at most ten times the period in which it was measured",
        ),
        (STAIRS, 12_500, (6_000.0, "estimate"), "up to this limit the rate is valid"),
        (
            [(0, 0), (0, 1_500)],
            500,
            (None, None),
            "the log start never moved: unlimited retention, compacted, or a young topic",
        ),
        ([(0, 0), (0, 590), (1_000, 600)], 1_500, (None, None), "one move gives no rate"),
        ([(5, 0)], 10, (None, None), "there is only one sample"),
        (
            [*((100 * at, at) for at in range(9)), (1, 10), (1, 11)],
            5,
            (None, None),
            "the topic was recreated: earlier moves do not count",
        ),
        (
            [(9_000, 0), (10, 100), (20, 200), (30, 300)],
            60,
            (300.0, "estimate"),
            "the topic was recreated: moves since then count, at 10 per 100 s",
        ),
        (
            [(0, 0), (100, 100), (200, 200), (200, 200 + RATE_WINDOW_MS // 1000)],
            300,
            (None, None),
            "moves of yesterday give no present rate",
        ),
        (
            [(0, 0), (0, 100), (2**62, 200), (2**62 + 2**61, 300)],
            2**63 - 2,
            (100.0, "estimate"),
            "the longest possible log",
        ),
    ],
)
def test_the_time_left_follows_the_moves_of_the_log_start(
    points: list[Point], committed: int, expected: tuple[float | None, str | None], why: str
) -> None:
    row = answer(sampled(points), points[-1], committed, end=2**63 - 1)
    found = (row["seconds_until_lost"], row["seconds_until_lost_kind"])
    assert found == (expected[0] if expected[0] is None else pytest.approx(expected[0]), expected[1]), why


@pytest.mark.parametrize(
    ("points", "newest", "committed", "end", "why"),
    [
        (STAIRS, STAIRS[-1], 4_500, None, "no end offset: the lag is unknown"),
        (STAIRS, STAIRS[-1], 4_500, 4_000, "the topic was recreated: the commit is invalid"),
        (STAIRS, (2_000, 1_505), 4_500, END, "the points of the log start are of a different sample"),
        ([], (2_000, 1_500), 4_500, END, "log starts were never sampled"),
    ],
)
def test_an_unknown_result_is_absent(
    points: list[Point], newest: Point, committed: int, end: int | None, why: str
) -> None:
    row = answer(sampled(points), newest, committed, end=end)
    assert set(row.values()) == {None}, why


def test_a_group_that_has_read_all_records_cannot_lose_any() -> None:
    """The log start of an idle topic moves to its end, which is no problem."""
    row = answer(sampled(STAIRS), STAIRS[-1], 4_500, end=4_500)
    assert row == {
        "records_lost": 0,
        "lost_since_ms": None,
        "lost_since_kind": None,
        "seconds_until_lost": None,
        "seconds_until_lost_kind": None,
    }


@given(st.integers(1, 5_000), st.integers(10, 900), st.integers(2, 25), st.integers(0, 899), st.integers(0, 60_000))
def test_for_equal_moves_the_result_is_never_late_and_at_most_one_move_early(
    rise: int, every_seconds: int, rises: int, since_last: int, ahead: int
) -> None:
    """An alert on this value fires in time."""
    starts = sampled([(rise * step, every_seconds * step) for step in range(rises + 1)])
    newest = (rise * rises, every_seconds * rises + since_last % every_seconds)
    starts.add({PARTITION: newest[0]}, newest[1] * 1000)
    committed = newest[0] + ahead
    row = answer(starts, newest, committed, end=committed + 1)
    lost_at_rise = committed // rise + 1
    true_seconds = lost_at_rise * every_seconds - newest[1]
    assert row["seconds_until_lost"] <= true_seconds + 1e-6
    if row["seconds_until_lost_kind"] == "estimate":
        assert row["seconds_until_lost"] >= true_seconds - every_seconds - 1e-6


def test_results_for_many_commits_equal_results_one_by_one() -> None:
    starts = SampledOffsets(LOG_START_POINTS)
    for tick in range(20):
        starts.add({("orders", number): tick // (number + 1) * 100 for number in range(5)}, tick * 60_000)
    commits = [(number, committed) for number in range(6) for committed in (0, 99, 450, 2_000, 90_000)]
    numbers, offsets = ([commit[index] for commit in commits] for index in range(2))
    columns = [["g"] * 30, ["orders"] * 30, numbers, offsets, [0] * 30]
    table = pa.table([pa.array(column) for column in columns], names=LAG_SCHEMA.names[:5])
    log_starts = {("orders", number): 19 // (number + 1) * 100 for number in range(5)}
    sample = ClusterSample(19 * 60_000, {}, dict.fromkeys(log_starts, 90_000), log_starts)
    together = retention(lag_report(table, sample), starts)
    alone = [retention(lag_report(table.slice(at, 1), sample), starts) for at in range(30)]
    assert together == pa.concat_tables(alone).combine_chunks()
    assert len(set(together["seconds_until_lost"].to_pylist())) > 5


def test_without_commits_there_are_no_results() -> None:
    lag = lag_report(LAG_SCHEMA.empty_table().select(LAG_SCHEMA.names[:5]), ClusterSample(5))
    assert retention(lag, sampled(STAIRS)).num_rows == 0
