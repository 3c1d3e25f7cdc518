"""Tests of the values of one sample for every group partition, and for each group by its worst partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from assignors.coordinator import coordinator_partition
from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample, lag_report
from streaming.evaluation.lag.lag_evaluation import (
    LagEvaluation,
    RetentionInputs,
    evaluate_lag,
    observed_rows,
    read_up_to_of_groups,
)
from streaming.evaluation.lag.lag_seconds import END_OFFSET_POINTS
from streaming.evaluation.lag.retention.lost_records import LOG_START_POINTS, Losses, losses
from streaming.evaluation.lag.status import Status
from streaming.evaluation.lag.stored.commit_windows import CommitWindows
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets

SECOND_MS = 1000


def evaluated(
    commits: Sequence[tuple[str, int, Sequence[int]]],
    ends: Sequence[int],
    log_start: int = 0,
    allowed_lag: int = 0,
) -> LagEvaluation:
    """Evaluate groups on `orders`, given as (group, partition, one committed offset per second).

    `ends` has one end offset per second.
    """
    last = len(ends) - 1
    rows = [("orders", number, offsets) for _, number, offsets in commits]
    sampled_ends, starts, windows = SampledOffsets(END_OFFSET_POINTS), SampledOffsets(LOG_START_POINTS), CommitWindows()
    for second, end in enumerate(ends):
        sampled_ends.add({("orders", number): end for _, number, _ in rows}, second * SECOND_MS)
    starts.add({("orders", number): log_start for _, number, _ in rows}, last * SECOND_MS)
    for row, (_, _, offsets) in enumerate(rows):
        for at, offset in enumerate(offsets):
            one = np.array([row]), np.array([offset]), np.array([at * SECOND_MS]), np.array([at])
            windows.put(*one)
            windows.observe(one[0], one[3], one[1], np.array([max(ends[at], offset)]))
    sample = ClusterSample(
        last * SECOND_MS,
        end_offsets={("orders", number): ends[-1] for _, number, _ in rows},
        log_start_offsets={("orders", number): log_start for _, number, _ in rows},
    )
    columns = [
        [group for group, _, _ in commits],
        ["orders"] * len(commits),
        [number for _, number, _ in commits],
        [offsets[-1] for *_, offsets in commits],
        [(len(offsets) - 1) * SECOND_MS for *_, offsets in commits],
    ]
    table = pa.table([pa.array(column) for column in columns], names=LAG_SCHEMA.names[:5])
    newest = np.array([len(offsets) - 1 for *_, offsets in rows])
    view = windows.as_of(np.arange(len(rows)), newest)
    read_up_to = pa.array([last * SECOND_MS] * len(rows))
    return evaluate_lag(lag_report(table, sample), sampled_ends, starts, view, read_up_to, allowed_lag)


GROWING = [0, 10, 20, 30, 40, 50]


def test_each_partition_has_lag_seconds_status_and_loss_beside_its_lag() -> None:
    """Each partition gets one record every 100 ms, 50 in total. A group that committed 40 is one second behind."""
    (row,) = evaluated([("g", 0, [0, 10, 20, 30, 30, 40])], GROWING).partitions.to_pylist()
    assert (row["lag"], row["lag_seconds"], row["lag_seconds_kind"]) == (10, 1.0, "exact")
    assert (row["records_lost"], row["unknown_reason"]) == (0, None)
    assert Status(row["status"]) is Status.OK


def test_a_group_is_evaluated_by_its_worst_partition() -> None:
    """An average over one stopped and nine healthy partitions would never alert."""
    kept_up, stands = [10, 20, 30, 40, 50], [5, 5, 5, 5, 5]
    by_group = evaluated([("b", 0, stands), ("b", 1, kept_up), ("a", 2, kept_up)], kept_up).groups.to_pylist()
    assert [row["group_id"] for row in by_group] == ["a", "b"]
    fine, standing = by_group
    assert (fine["lag_seconds"], fine["lag_seconds_is_bound"], fine["status"]) == (0.0, False, "OK")
    assert (standing["lag_seconds"], standing["lag_seconds_is_bound"], standing["status"]) == (4.0, True, "STALL")


def test_a_group_value_is_a_bound_only_if_the_worst_partition_has_a_bound() -> None:
    older, younger = [("g", 0, [0, 0, 0])], [("g", 0, [15, 15, 15])]
    ends = [10, 20, 30]
    (bound,) = evaluated(older, ends).groups.to_pylist()
    assert (bound["lag_seconds"], bound["lag_seconds_is_bound"]) == (2.0, True)
    (exact,) = evaluated(younger, ends).groups.to_pylist()
    assert (exact["lag_seconds"], exact["lag_seconds_is_bound"]) == (1.5, False)


def test_records_lost_by_retention_are_summed_over_partitions() -> None:
    (row,) = evaluated([("g", 0, [3]), ("g", 1, [5])], [50], log_start=20).groups.to_pylist()
    assert row["records_lost"] == 17 + 15


def test_an_allowed_lag_counts_as_none_for_the_status() -> None:
    """A transactional topic ends with a marker. A group that has read all records keeps a lag of 1."""
    ends = [0, 10, 20, 21, 21, 21]
    standing = [("g", 0, [0, 10, 20, 20, 20, 20])]
    (strict,) = evaluated(standing, ends).partitions.to_pylist()
    assert (Status(strict["status"]), strict["status_rule"], strict["lag"]) == (Status.OK, 4, 1)
    stuck = [("g", 0, [20, 20, 20, 20, 20, 20])]
    (marker,) = evaluated(stuck, [21] * 6).partitions.to_pylist()
    assert Status(marker["status"]) is Status.STALL
    (allowed,) = evaluated(stuck, [21] * 6, allowed_lag=1).partitions.to_pylist()
    assert (Status(allowed["status"]), allowed["status_rule"], allowed["lag"]) == (Status.OK, 1, 1), (
        "the allowed lag is still shown"
    )


def test_without_windows_only_the_status_is_missing() -> None:
    """After committed offsets are renumbered, one sample has no windows."""
    known = evaluated([("g", 0, [5])], [50])
    report = known.report
    ends, starts = SampledOffsets(END_OFFSET_POINTS), SampledOffsets(LOG_START_POINTS)
    (row,) = evaluate_lag(report, ends, starts, None, pa.nulls(1, pa.int64())).partitions.to_pylist()
    assert (row["status"], row["status_rule"], row["lag"]) == (None, None, 45)


def test_a_commit_during_a_loss_does_not_move_its_start() -> None:
    """A group that was behind retention committed again, still behind. Its loss seemed to begin with that commit."""
    starts, ends = SampledOffsets(LOG_START_POINTS), SampledOffsets(END_OFFSET_POINTS)
    known: Losses = {}
    since_ms = []
    for sampled_at_ms, committed, committed_at_ms in ((1_000, 5, 900), (2_000, 50, 1_900)):
        sample = ClusterSample(sampled_at_ms, {}, {("t", 0): 200}, {("t", 0): 100})
        starts.add(sample.log_start_offsets, sampled_at_ms)
        ends.add(sample.end_offsets, sampled_at_ms)
        commits = pa.table([["g"], ["t"], [0], [committed], [committed_at_ms]], names=LAG_SCHEMA.names[:5])
        report = lag_report(commits, sample)
        retained = RetentionInputs(earlier=known)
        found = evaluate_lag(report, ends, starts, None, pa.nulls(1, pa.int64()), retained=retained).partitions
        known = losses(found, known)
        since_ms += found["lost_since_ms"].to_pylist()
    assert since_ms == [1_000, 1_000]


def test_a_group_without_any_known_value_is_unknown() -> None:
    """Rule 2: the value is neither 0 nor NaN."""
    table = pa.table([["g"], ["t"], [0], [5], [7]], names=LAG_SCHEMA.names[:5])
    ends, starts = SampledOffsets(END_OFFSET_POINTS), SampledOffsets(LOG_START_POINTS)
    report = lag_report(table, ClusterSample(9))
    assert not observed_rows(report).any()
    (row,) = evaluate_lag(report, ends, starts, None, pa.nulls(1, pa.int64())).groups.to_pylist()
    assert {name: value for name, value in row.items() if name not in {"group_id", "completeness"}} == {
        "lag": None,
        "max_partition_lag": None,
        "lag_unknown": ["no_end_offset"],
        "lag_seconds": None,
        "lag_seconds_is_bound": None,
        "last_commit_ms": 7,
        "consumed_records_per_second": None,
        "produced_records_per_second": None,
        "catch_up_seconds": None,
        "worst_topic": None,
        "worst_partition": None,
        "blocked_partitions": None,
        "records_lost": None,
        "seconds_until_lost": None,
        "offsets_expire_ms": None,
        "seconds_until_expiry": None,
        "status": None,
    }


@pytest.mark.parametrize(
    ("partitions", "times_ms", "expected", "why"),
    [
        (50, {coordinator_partition("g", 50): 7}, 7, "the partition of its coordinator"),
        (50, {}, None, "not read up to any sample"),
        (50, {coordinator_partition("g", 50): None}, None, "the end of no sample was reached yet"),
        (0, {}, 3, "no log to read: the time of the last poll counts"),
    ],
)
def test_silence_is_counted_up_to_the_read_time_of_the_groups_partition(
    partitions: int, times_ms: dict[int, int | None], expected: int | None, why: str
) -> None:
    """A monitor that is an hour late must not report silence. The wall clock is not used."""
    sample = ClusterSample(9, offsets_topic_partitions=partitions)
    group_ids = pa.chunked_array([["g", "g"]])
    assert read_up_to_of_groups(group_ids, times_ms, sample, polled_at_ms=3).to_pylist() == [expected] * 2, why
    refused = replace(sample, refused_groups=frozenset({"g"}))
    assert read_up_to_of_groups(group_ids, times_ms, refused, polled_at_ms=3).to_pylist() == [None] * 2
