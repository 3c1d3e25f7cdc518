"""Sum up the lag of partitions by group. Metrics, pages and the API all show these sums.

A sum is known if all of its parts are known. A maximum or minimum is calculated from the known values only.
"""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa
import pyarrow.compute as pc

from streaming.evaluation.lag.lag_seconds import AT_LEAST
from streaming.evaluation.lag.status import STATUS_SCHEMA, group_statuses, status_names

GROUP_LAGS_SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("lag", pa.int64()),
        ("max_partition_lag", pa.int64()),
        ("lag_unknown", pa.list_(pa.string())),
        ("lag_seconds", pa.float64()),
        ("lag_seconds_is_bound", pa.bool_()),
        ("status", pa.string()),
        ("completeness", pa.float64()),
        ("blocked_partitions", pa.int64()),
        ("records_lost", pa.int64()),
        ("seconds_until_lost", pa.float64()),
        ("offsets_expire_ms", pa.int64()),
        ("seconds_until_expiry", pa.float64()),
    ]
)
"""One row per group, sorted by id. A value is null if it is unknown for every partition.

`lag`: sum of all partitions. `lag_unknown`: the reasons why a lag is unknown. `lag_seconds`: the largest known lag in
seconds. `lag_seconds_is_bound`: True if `lag_seconds` is only a lower bound. `status`: the worst status of all
partitions. `records_lost`: total.
`seconds_until_lost`: the shortest time until a partition loses more records. `offsets_expire_ms`, and
`seconds_until_expiry`: the earliest time at which a committed offset expires (`expiry.py`).
"""

_REASONS = pa.list_(pa.string())
_ALL_KNOWN = pc.ScalarAggregateOptions(skip_nulls=False)


def group_lags(rows: pa.Table) -> pa.Table:
    """Sum up rows of `LagEvaluation.partitions` by group (GROUP_LAGS_SCHEMA)."""
    is_bound = pc.equal(rows["lag_seconds_kind"].cast(pa.string()), AT_LEAST)
    by_group = (
        rows.append_column("bound", pc.if_else(is_bound, rows["lag_seconds"], None))
        .append_column("blocked", pc.if_else(rows["is_blocked"], 1, None))
        .group_by("group_id")
    )
    sums = by_group.aggregate(
        [
            ("lag", "sum", _ALL_KNOWN),
            ("lag", "max"),
            ("lag_seconds", "max"),
            ("bound", "max"),
            ("blocked", "sum"),
            ("records_lost", "sum"),
            ("seconds_until_lost", "min"),
            ("offsets_expire_ms", "min"),
            ("seconds_until_expiry", "min"),
        ]
    ).sort_by("group_id")
    is_at_least = pc.fill_null(pc.equal(sums["bound_max"], sums["lag_seconds_max"]), fill_value=False)
    status = group_statuses(rows["group_id"], rows.select(STATUS_SCHEMA.names)).sort_by("group_id")
    columns = {
        "group_id": sums["group_id"],
        "lag": sums["lag_sum"],
        "max_partition_lag": sums["lag_max"],
        "lag_unknown": _unknown_reasons(rows, sums["group_id"]),
        "lag_seconds": sums["lag_seconds_max"],
        "lag_seconds_is_bound": pc.if_else(pc.is_valid(sums["lag_seconds_max"]), is_at_least, None),
        "status": status_names(status["status"]),
        "completeness": status["completeness"],
        "blocked_partitions": sums["blocked_sum"],
        "records_lost": sums["records_lost_sum"],
        "seconds_until_lost": sums["seconds_until_lost_min"],
        "offsets_expire_ms": sums["offsets_expire_ms_min"],
        "seconds_until_expiry": sums["seconds_until_expiry_min"],
    }
    return pa.table([columns[name] for name in GROUP_LAGS_SCHEMA.names], schema=GROUP_LAGS_SCHEMA)


def _unknown_reasons(rows: pa.Table, group_ids: pa.ChunkedArray) -> pa.Array:
    """Return, by group, the reasons why the lag of a partition is unknown. Empty if every lag is known."""
    unknown = rows.filter(pc.is_valid(rows["unknown_reason"])).group_by(["group_id", "unknown_reason"]).aggregate([])
    reasons = defaultdict[str, list[str]](list)
    for group_id, reason in zip(unknown["group_id"].to_pylist(), unknown["unknown_reason"].to_pylist(), strict=True):
        reasons[group_id].append(reason)
    none: list[str] = []
    return pa.array([sorted(reasons.get(group_id, none)) for group_id in group_ids.to_pylist()], _REASONS)
