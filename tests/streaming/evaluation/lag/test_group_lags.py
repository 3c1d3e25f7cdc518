"""Tests of the sum of lag by group, which all outputs use."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from assignors.coordinator import coordinator_partition
from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample, LogEnds, lag_report
from streaming.evaluation.lag.lag_evaluation import LagEvaluation, evaluate_lag
from streaming.evaluation.lag.lag_seconds import END_OFFSET_POINTS
from streaming.evaluation.lag.retention.lost_records import LOG_START_POINTS
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets

Commits = Mapping[tuple[str, str, int], int]


def evaluated(commits: Commits, sample: ClusterSample) -> LagEvaluation:
    """Evaluate offsets by group, topic and partition, without earlier samples."""
    columns = [*zip(*commits, strict=True), list(commits.values()), [7] * len(commits)]
    table = pa.table([pa.array(column) for column in columns], names=LAG_SCHEMA.names[:5])
    ends, starts = SampledOffsets(END_OFFSET_POINTS), SampledOffsets(LOG_START_POINTS)
    return evaluate_lag(lag_report(table, sample), ends, starts, None, pa.nulls(len(commits), pa.int64()))


@pytest.mark.parametrize(
    ("ends", "lag", "unknown", "why"),
    [
        ({("orders", 0): 10, ("orders", 1): 10}, 15, [], "the sum"),
        (
            {("orders", 0): 10},
            None,
            ["no_end_offset"],
            "one partition was not sampled: the sum is unknown, not smaller",
        ),
        ({("orders", 0): 10, ("orders", 1): 0}, None, ["end_before_commit"], "one partition was recreated"),
        ({("orders", 1): 0}, None, ["end_before_commit", "no_end_offset"], "each reason once"),
    ],
)
def test_a_groups_sum_is_unknown_if_one_part_is_unknown(
    ends: dict[tuple[str, int], int], lag: int | None, unknown: list[str], why: str
) -> None:
    commits = {("g", "orders", 0): 2, ("g", "orders", 1): 3, ("other", "orders", 0): 10}
    found = evaluated(commits, ClusterSample(1_000, end_offsets=ends)).groups.to_pylist()
    by_group = {row["group_id"]: row for row in found}
    assert (by_group["g"]["lag"], by_group["g"]["lag_unknown"]) == (lag, unknown), why
    assert by_group["other"]["lag"] == (0 if ("orders", 0) in ends else None), "the lag of another group is independent"


def test_a_group_that_is_blocked_by_an_open_transaction_has_no_row() -> None:
    """Later commits of the group are hidden, so its lag is not reported."""
    held = coordinator_partition("g", 50)
    sample = ClusterSample(
        1_000,
        end_offsets={("orders", 0): 10},
        offsets_topic={held: LogEnds(9, 5)},
        offsets_topic_partitions=50,
    )
    found = evaluated({("g", "orders", 0): 2, ("other", "orders", 0): 3}, sample)
    assert found.groups["group_id"].to_pylist() == ["other"]
    assert found.partitions.num_rows == 2


def test_a_name_that_no_table_can_store_has_no_rows() -> None:
    """A request to the page can contain a lone surrogate."""
    found = evaluated({("g", "orders", 0): 2}, ClusterSample(1_000, end_offsets={("orders", 0): 10}))
    assert ([row["lag"] for row in found.rows_of("g")], found.rows_of("\ud800")) == ([8], ())
