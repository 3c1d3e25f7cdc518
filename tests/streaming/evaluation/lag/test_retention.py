"""Loss by retention: how much, since when, and how long until more, on staircases of log starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample, lag_report
from streaming.evaluation.lag.retention import LOG_START_POINTS, RATE_WINDOW_MS, RETENTION_SCHEMA, retention
from streaming.evaluation.lag.sampled_offsets import SampledOffsets

Point = tuple[int, int]
"""Log start, sampled at second."""
PARTITION = ("orders", 0)
END = 1_000_000
STAIRS = [(0, 0), (0, 590), (1_000, 600), (1_000, 1_190), (2_000, 1_200), (2_000, 1_500)]
"""1000 every 600 s, last at 1200 s; now is 1500 s."""


def sampled(points: Sequence[Point], limit: int = LOG_START_POINTS) -> SampledOffsets:
    """Return log starts of one partition, sampled one after another."""
    starts = SampledOffsets(limit)
    for log_start, second in points:
        starts.add({PARTITION: log_start}, second * 1000)
    return starts


def answer(  # noqa: PLR0913 - what an answer depends on
    starts: SampledOffsets,
    newest: Point,
    committed: int,
    *,
    end: int | None = END,
    commit_second: int = 0,
    before: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the answer for one commit at the newest point's time."""
    columns = [["g"], ["orders"], [0], [committed], [commit_second * 1000]]
    commits = pa.table([pa.array(column) for column in columns], names=LAG_SCHEMA.names[:5])
    end_offsets = {} if end is None else {PARTITION: end}
    sample = ClusterSample(newest[1] * 1000, {}, end_offsets, {PARTITION: newest[0]})
    known = None if before is None else pa.Table.from_pylist([before], schema=RETENTION_SCHEMA)
    table = retention(lag_report(commits, sample), starts, known)
    assert table.schema == RETENTION_SCHEMA
    (row,) = table.to_pylist()
    return dict(row)


@pytest.mark.parametrize(
    ("points", "committed", "commit_second", "lost", "since_second", "kind", "why"),
    [
        (STAIRS, 2_000, 0, 0, None, None, "the log start itself is still there"),
        (STAIRS, 1_999, 0, 1, 1_200, "exact", "one record, at the second rise"),
        (STAIRS, 500, 0, 1_500, 600, "exact", "since the first rise, which is when it began"),
        (STAIRS, 500, 700, 1_500, 700, "exact", "committed when it was gone already: since then"),
        (STAIRS, 500, 9_999, 1_500, 1_500, "exact", "a commit of the future is of now"),
        ([(2_000, 100), (2_000, 900)], 500, 0, 1_500, 100, "at_least", "the oldest sample saw it already"),
        ([(2_000, 100), (2_000, 900)], 500, 200, 1_500, 200, "exact", "but the commit came later than it"),
        ([(2_000, 100), (2_000, 900)], 500, 100, 1_500, 100, "exact", "or with it"),
        ([(9_000, 0), (10, 100), (20, 200)], 15, 0, 5, 200, "exact", "created anew: what was before says nothing"),
    ],
)
def test_records_are_lost_since_the_first_sample_that_saw_it(  # noqa: PLR0913, PLR0917 - a row of the table
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


def test_the_time_of_a_loss_stands_while_the_loss_does() -> None:
    """Points are thinned as they age, and a group may commit while it is behind: the loss began when it began."""
    first = answer(sampled(STAIRS), STAIRS[-1], 500)
    later = [*STAIRS, (3_000, 1_800)]
    assert answer(sampled(later), later[-1], 700, commit_second=1_700, before=first)["lost_since_ms"] == 600_000
    caught_up = answer(sampled(later), later[-1], 3_000, before=first)
    assert (caught_up["lost_since_ms"], caught_up["lost_since_kind"]) == (None, None)
    again = answer(sampled(later), later[-1], 2_999, before=caught_up)
    assert again["lost_since_ms"] == 1_800_000


@pytest.mark.parametrize(
    ("points", "committed", "expected", "why"),
    [
        (STAIRS, 4_500, (1_200.0, "estimate"), "the worked example: until 2700 s; the staircase is there at 3000 s"),
        (STAIRS, 5_000, (1_500.0, "estimate"), "a corner of the staircase: 3000 s"),
        (STAIRS, 2_400, (0.0, "estimate"), "the next rise may do it, and it is due"),
        (STAIRS, 1_999, (0.0, "estimate"), "lost already"),
        (STAIRS, 12_501, (6_000.0, "at_least"), "no rate is good for more than ten times what it was measured over"),
        (STAIRS, 12_500, (6_000.0, "estimate"), "and up to there it is"),
        ([(0, 0), (0, 1_500)], 500, (None, None), "it never moved: kept for ever, compacted, or young"),
        ([(0, 0), (0, 590), (1_000, 600)], 1_500, (None, None), "one move has no rate"),
        ([(5, 0)], 10, (None, None), "a first sample"),
        (
            [*((100 * at, at) for at in range(9)), (1, 10), (1, 11)],
            5,
            (None, None),
            "created anew: the old moves are gone",
        ),
        (
            [(9_000, 0), (10, 100), (20, 200), (30, 300)],
            60,
            (300.0, "estimate"),
            "created anew: moves since then count, at 10 a 100 s",
        ),
        (
            [(0, 0), (100, 100), (200, 200), (200, 200 + RATE_WINDOW_MS // 1000)],
            300,
            (None, None),
            "moves of yesterday are no present rate",
        ),
        (
            [(0, 0), (0, 100), (2**62, 200), (2**62 + 2**61, 300)],
            2**63 - 2,
            (100.0, "estimate"),
            "the longest log there can be",
        ),
    ],
)
def test_the_time_left_follows_the_staircase(
    points: list[Point], committed: int, expected: tuple[float | None, str | None], why: str
) -> None:
    row = answer(sampled(points), points[-1], committed, end=2**63 - 1)
    found = (row["seconds_until_lost"], row["seconds_until_lost_kind"])
    assert found == (expected[0] if expected[0] is None else pytest.approx(expected[0]), expected[1]), why


@pytest.mark.parametrize(
    ("points", "newest", "committed", "end", "why"),
    [
        (STAIRS, STAIRS[-1], 4_500, None, "no end offset: the lag is unknown, and so is what waits"),
        (STAIRS, STAIRS[-1], 4_500, 4_000, "deleted and created anew: the commit means nothing"),
        (STAIRS, (2_000, 1_505), 4_500, END, "the log start's points are of another sample"),
        ([], (2_000, 1_500), 4_500, END, "log starts were never sampled"),
    ],
)
def test_what_is_unknown_is_absent(
    points: list[Point], newest: Point, committed: int, end: int | None, why: str
) -> None:
    row = answer(sampled(points), newest, committed, end=end)
    assert set(row.values()) == {None}, why


def test_a_group_that_has_read_everything_has_nothing_to_lose() -> None:
    """An idle topic's log start runs up to its end: that is no alarm."""
    row = answer(sampled(STAIRS), STAIRS[-1], 4_500, end=4_500)
    assert row == {
        "records_lost": 0,
        "lost_since_ms": None,
        "lost_since_kind": None,
        "seconds_until_lost": None,
        "seconds_until_lost_kind": None,
    }


@given(st.integers(1, 5_000), st.integers(10, 900), st.integers(2, 25), st.integers(0, 899), st.integers(0, 60_000))
def test_on_an_even_staircase_the_answer_is_never_late_and_early_by_one_rise_at_most(
    rise: int, every_seconds: int, rises: int, since_last: int, ahead: int
) -> None:
    """The law behind the formula: an alert on it comes in time."""
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


def test_many_commits_are_answered_as_one_by_one() -> None:
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


def test_no_commits_have_no_answer() -> None:
    lag = lag_report(LAG_SCHEMA.empty_table().select(LAG_SCHEMA.names[:5]), ClusterSample(5))
    assert retention(lag, sampled(STAIRS)).num_rows == 0
