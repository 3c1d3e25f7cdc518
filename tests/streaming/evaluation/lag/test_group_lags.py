"""Tests of the sum of lag by group, which all outputs use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from assignors.coordinator import coordinator_partition
from streaming.evaluation.lag.group_lags import GROUP_LAGS_SCHEMA, group_lags
from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample, LogEnds, lag_report
from streaming.evaluation.lag.lag_evaluation import LagEvaluation, evaluate_lag
from streaming.evaluation.lag.lag_seconds import END_OFFSET_POINTS
from streaming.evaluation.lag.retention.lost_records import LOG_START_POINTS
from streaming.evaluation.lag.status import STATUS_SCHEMA, Status
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets

OK, WARN, STOP, STALL, REWIND = Status.OK, Status.WARN, Status.STOP, Status.STALL, Status.REWIND
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


@pytest.mark.parametrize(
    ("lost", "expected", "why"),
    [
        ([0, 0], 0, "both are known"),
        ([0, None], None, "the other partition may have lost records"),
        ([6, None], 6, "at least 6: a known loss is never hidden"),
        ([6, 10], 16, "the sum"),
        ([None, None], None, "nothing is known"),
    ],
)
def test_a_group_has_lost_no_records_only_if_the_loss_of_each_partition_is_known(
    lost: list[int | None], expected: int | None, why: str
) -> None:
    """Retention had deleted 10 records of partition 0, and its loss was unknown. The group showed 0 lost records."""
    partitions = with_statuses([("g", OK, 1.0), ("g", OK, 1.0)])
    at = partitions.schema.get_field_index("records_lost")
    (group,) = group_lags(partitions.set_column(at, "records_lost", pa.array(lost, pa.int64()))).to_pylist()
    assert group["records_lost"] == expected, why


def test_a_name_that_no_table_can_store_has_no_rows() -> None:
    """A request to the page can contain a lone surrogate."""
    found = evaluated({("g", "orders", 0): 2}, ClusterSample(1_000, end_offsets={("orders", 0): 10}))
    assert ([row["lag"] for row in found.rows_of("g")], found.rows_of("\ud800")) == ([8], ())


def with_statuses(rows: Sequence[tuple[str, Status | None, float]]) -> pa.Table:
    """Return partitions with these groups, statuses and filled shares of the window."""
    names = [(group_id, "orders", partition) for partition, (group_id, _, _) in enumerate(rows)]
    partitions = evaluated(dict.fromkeys(names, 2), ClusterSample(1_000)).partitions
    known = {"status": [status for _, status, _ in rows], "completeness": [share for *_, share in rows]}
    for name, values in known.items():
        column = pa.array(values, STATUS_SCHEMA.field(name).type)
        partitions = partitions.set_column(partitions.schema.get_field_index(name), name, column)
    return partitions


@pytest.mark.parametrize(
    ("rows", "status", "completeness", "why"),
    [
        ([("g", OK, 1.0), ("g", WARN, 1.0)], WARN, 1.0, "the worst of the partitions"),
        ([("g", STOP, 1.0), ("g", STALL, 1.0), ("g", WARN, 1.0)], STALL, 1.0, "OK < WARN < STOP < STALL < REWIND"),
        ([("g", STALL, 1.0), ("g", REWIND, 1.0)], REWIND, 1.0, "REWIND is the worst"),
        ([("g", OK, 1.0), ("g", OK, 0.9)], OK, 0.5, "an incomplete window counts as half"),
        ([("g", OK, 1.0), ("g", None, 1.0)], OK, 0.5, "an unknown partition counts only in the completeness"),
        ([("g", None, 1.0), ("g", None, 0.0)], None, 0.0, "a group without a known status is not OK"),
        ([("g", OK, 1.0), ("other", STOP, 1.0)], OK, 1.0, "the status of another group does not count"),
    ],
)
def test_a_group_has_the_status_of_its_worst_partition(
    rows: list[tuple[str, Status | None, float]], status: Status | None, completeness: float, why: str
) -> None:
    (group,) = [row for row in group_lags(with_statuses(rows)).to_pylist() if row["group_id"] == "g"]
    assert (group["status"], group["completeness"]) == (status and status.name, completeness), why


def test_without_partitions_there_are_no_groups() -> None:
    found = group_lags(with_statuses([("g", OK, 1.0)]).slice(0, 0))
    assert (found.num_rows, found.schema) == (0, GROUP_LAGS_SCHEMA)
