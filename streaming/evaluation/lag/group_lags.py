"""Compute the lag of each group from the lag of its partitions.

The lag of a group is null if the lag of one of its partitions is unknown. The number of lost records is null instead of
0 if the number of one partition is unknown. Rules 10 and 11 of `rates.py` describe when the rates and the time to catch
up are null. All other values of a group ignore partitions with an unknown value. Burrow shows all statuses that are
worse than WARN as ERR. Instead, this monitor shows the name of the worst status.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from streaming.evaluation.lag.lag_seconds import AT_LEAST
from streaming.evaluation.lag.rates import DELETED, RATES_SCHEMA, catch_up_seconds
from streaming.evaluation.lag.status import status_names

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
        ("last_commit_ms", pa.int64()),
        ("consumed_records_per_second", pa.float64()),
        ("produced_records_per_second", pa.float64()),
        ("catch_up_seconds", pa.float64()),
        ("worst_topic", pa.string()),
        ("worst_partition", pa.int32()),
        ("offsets_expire_ms", pa.int64()),
        ("seconds_until_expiry", pa.float64()),
    ]
)
"""One row per group, sorted by id.

`lag_unknown`: the reasons why a lag is unknown. `lag_seconds`: the largest known lag in seconds.
`lag_seconds_is_bound`: True if `lag_seconds` is only a lower bound. `status`: the worst known status of all partitions.
`completeness`: the share of the partitions that have a full window and a known status (0-1). `records_lost`: the sum of
all known values, or null if this sum is 0 and a value is unknown. `seconds_until_lost`: the shortest time until a
partition loses more records. `worst_topic` and `worst_partition`: the partition with the largest lag in seconds, null
if no partition has a lag. `offsets_expire_ms` and `seconds_until_expiry`: the earliest time at which a committed offset
expires (`expiry.py`).
"""

_ALL_KNOWN = pc.ScalarAggregateOptions(skip_nulls=False)


def group_lags(rows: pa.Table) -> pa.Table:
    """Compute one row per group from the rows of `LagEvaluation.partitions` (GROUP_LAGS_SCHEMA)."""
    is_bound = pc.equal(rows["lag_seconds_kind"].cast(pa.string()), AT_LEAST)
    is_full = pc.and_(pc.is_valid(rows["status"]), pc.greater_equal(rows["completeness"], 1.0))
    by_group = (
        rows.append_column("bound", pc.if_else(is_bound, rows["lag_seconds"], None))
        .append_column("full", is_full.cast(pa.float64()))
        .append_column("blocked", pc.if_else(rows["is_blocked"], 1, None))
        .group_by("group_id", use_threads=False)
    )
    sums = by_group.aggregate(
        [
            ("lag", "sum", _ALL_KNOWN),
            ("lag", "max"),
            ("lag_seconds", "max"),
            ("bound", "max"),
            ("status", "max"),
            ("full", "mean"),
            ("blocked", "sum"),
            ("records_lost", "sum"),
            ("records_lost", "min", _ALL_KNOWN),
            ("seconds_until_lost", "min"),
            ("commit_timestamp_ms", "max"),
            ("offsets_expire_ms", "min"),
            ("seconds_until_expiry", "min"),
        ]
    ).sort_by("group_id")
    is_at_least = pc.fill_null(pc.equal(sums["bound_max"], sums["lag_seconds_max"]), fill_value=False)
    rates, lost = _rates(rows, sums["group_id"]), sums["records_lost_sum"]
    columns = {
        "group_id": sums["group_id"],
        "lag": sums["lag_sum"],
        "max_partition_lag": sums["lag_max"],
        "lag_unknown": _unknown_reasons(rows, sums["group_id"]),
        "lag_seconds": sums["lag_seconds_max"],
        "lag_seconds_is_bound": pc.if_else(pc.is_valid(sums["lag_seconds_max"]), is_at_least, None),
        "status": status_names(sums["status_max"]),
        "completeness": sums["full_mean"],
        "blocked_partitions": sums["blocked_sum"],
        "records_lost": pc.if_else(pc.greater(lost, 0), lost, sums["records_lost_min"]),
        "seconds_until_lost": sums["seconds_until_lost_min"],
        "last_commit_ms": sums["commit_timestamp_ms_max"],
        **rates,
        "catch_up_seconds": catch_up_seconds(sums["lag_sum"], *rates.values()),
        **_worst_partitions(rows, sums["group_id"], sums["lag_seconds_max"]),
        "offsets_expire_ms": sums["offsets_expire_ms_min"],
        "seconds_until_expiry": sums["seconds_until_expiry_min"],
    }
    return pa.table([columns[name] for name in GROUP_LAGS_SCHEMA.names], schema=GROUP_LAGS_SCHEMA)


def _rates(rows: pa.Table, group_ids: pa.ChunkedArray) -> Mapping[str, pa.ChunkedArray]:
    """Return the rates of each group (rule 10 of `rates.py`)."""
    existing = rows.filter(pc.invert(pc.is_in(rows["unknown_reason"], value_set=DELETED)))
    sums = existing.group_by("group_id", use_threads=False).aggregate(
        [(name, "sum", _ALL_KNOWN) for name in RATES_SCHEMA.names]
    )
    at = pc.index_in(group_ids, value_set=sums["group_id"])
    return {name: sums[f"{name}_sum"].take(at) for name in RATES_SCHEMA.names}


def _worst_partitions(
    rows: pa.Table, group_ids: pa.ChunkedArray, largest_seconds: pa.ChunkedArray
) -> Mapping[str, pa.ChunkedArray]:
    """Return the partition with the largest lag in seconds.

    If several partitions have this lag in seconds, the largest lag in records decides.
    """
    of_group = largest_seconds.take(pc.index_in(rows["group_id"], value_set=group_ids))
    is_worst = pc.and_(pc.equal(rows["lag_seconds"], of_group), pc.greater(rows["lag_seconds"], 0))
    order = [("group_id", "ascending"), ("lag", "descending"), ("topic", "ascending"), ("partition", "ascending")]
    worst = rows.select([name for name, _ in order]).filter(is_worst).sort_by(order)
    first = worst.group_by("group_id", use_threads=False).aggregate([("topic", "first"), ("partition", "first")])
    at = pc.index_in(group_ids, value_set=first["group_id"])
    return {"worst_topic": first["topic_first"].take(at), "worst_partition": first["partition_first"].take(at)}


def _unknown_reasons(rows: pa.Table, group_ids: pa.ChunkedArray) -> pa.Array:
    unknown = rows.filter(pc.is_valid(rows["unknown_reason"]))
    unknown = unknown.group_by(["group_id", "unknown_reason"], use_threads=False)
    reasons = defaultdict[str, list[str]](list)
    for row in unknown.aggregate([]).to_pylist():
        reasons[row["group_id"]].append(row["unknown_reason"])
    return pa.array([sorted(reasons.get(group_id, ())) for group_id in group_ids.to_pylist()], pa.list_(pa.string()))
