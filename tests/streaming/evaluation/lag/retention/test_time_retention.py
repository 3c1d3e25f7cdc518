"""Tests of the time until Kafka deletes the next record of a group because of `retention.ms`."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streaming.evaluation.lag.retention.time_retention import seconds_left

WEEK_MS = 7 * 24 * 3_600_000


@pytest.mark.parametrize(
    ("lag_seconds", "kind", "retention_ms", "left", "why"),
    [
        (0.0, "exact", WEEK_MS, 604_800.0, "a record that was just written is kept for a week"),
        (601_200.0, "exact", WEEK_MS, 3_600.0, "one hour before the week is over"),
        (700_000.0, "exact", WEEK_MS, 0.0, "Kafka deletes whole segments, so the record can be older than the limit"),
        (601_200.0, "at_least", WEEK_MS, None, "the record may be older: the time left is unknown"),
        (604_800.0, "at_least", WEEK_MS, 0.0, "the record is at least as old as the limit"),
        (None, "unknown", WEEK_MS, None, "the age is unknown"),
        (601_200.0, "exact", None, None, "compacted, unlimited, or the settings are unknown"),
    ],
)
def test_the_time_left_is_the_retention_minus_the_age(
    lag_seconds: float | None, kind: str, retention_ms: int | None, left: float | None, why: str
) -> None:
    """Rules 1 to 3."""
    ages = pa.table({"lag_seconds": pa.array([lag_seconds], pa.float64()), "lag_seconds_kind": [kind]})
    settings = {} if retention_ms is None else {"orders": retention_ms}
    (found,) = seconds_left(pa.chunked_array([["orders"]]), ages, settings).to_pylist()
    assert found == left, why
