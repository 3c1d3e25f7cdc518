"""Defines two tables: the lag of committed partitions at each sample, and their status."""

from __future__ import annotations

import pyarrow as pa

from streaming.delta.tables.columns import (
    SAMPLED_PARTITION,
    TIME,
    Table,
    column,
)

GROUP_LAG = Table(
    "group_lag",
    "one committed partition of one group at one sample. A row is written only if a value changed since the last"
    " sample",
    pa.schema(
        [
            *SAMPLED_PARTITION,
            column("committed_offset", pa.int64(), "next offset that the group will read"),
            column("commit_time", TIME, "the coordinator's timestamp of the commit"),
            column("end_offset", pa.int64(), "end offset of the partition; null if it could not be sampled"),
            column(
                "log_start_offset", pa.int64(), "log start offset of the partition; null if it could not be sampled"
            ),
            column(
                "lag",
                pa.int64(),
                "end_offset - committed_offset; offsets that have no record and lie before the next record do not"
                " count; null if unknown",
            ),
            column(
                "unknown_reason",
                pa.string(),
                "reason why lag is unknown: blocked, topic_deleted, partition_deleted, no_end_offset,"
                " end_before_commit, maybe_only_markers",
            ),
            column(
                "lag_seconds",
                pa.float64(),
                "age in seconds of the next record that the group must read; null if unknown",
            ),
            column(
                "lag_seconds_kind",
                pa.string(),
                "exact, at_least (the record is older than every stored sample) or unknown",
            ),
            column(
                "within_seconds",
                pa.float64(),
                "largest possible error of lag_seconds, in seconds; null if lag_seconds_kind is not exact",
            ),
            column(
                "consumed_records_per_second",
                pa.float64(),
                "growth of committed_offset in records per second, averaged over five minutes; null if unknown, for"
                " example during the first minute and after committed_offset went back",
            ),
            column(
                "produced_records_per_second",
                pa.float64(),
                "growth of end_offset in records per second, averaged over five minutes; null if unknown, for example"
                " during the first minute and after the topic was created again",
            ),
        ]
    ),
)

PARTITION_STATUS = Table(
    "partition_status",
    "the status of one committed partition of one group at one sample. A row is written only if status or records_lost"
    " changed since the last sample",
    pa.schema(
        [
            *SAMPLED_PARTITION,
            column(
                "status",
                pa.string(),
                "OK, WARN, STOP, STALL or REWIND, derived from the last ten commits; null if unknown",
            ),
            column(
                "status_rule",
                pa.int8(),
                "number of the rule for the status (streaming/evaluation/lag/status.py). If the status is unknown: 8:"
                " blocked by an open transaction, 9: maybe only transaction markers are left",
            ),
            column("completeness", pa.float64(), "known share of the last ten commits, from 0 to 1"),
            column("committed_offset", pa.int64(), "next offset that the group will read"),
            column("lag", pa.int64(), "records that the group has not committed yet; null if unknown"),
            column(
                "records_lost",
                pa.int64(),
                "offsets that retention deleted before the group committed them; null if unknown",
            ),
            column("lost_since_time", TIME, "time since which records are lost; null if nothing is lost"),
            column(
                "lost_since_kind",
                pa.string(),
                "exact, or at_least: the records were lost before the oldest stored sample; null if nothing is lost",
            ),
            column(
                "seconds_until_lost",
                pa.float64(),
                "estimated seconds until retention deletes records that the group has not committed, from the current"
                " rate and from retention.ms; 0 if records are already lost; null if unknown, or if there is no lag",
            ),
            column("seconds_until_lost_kind", pa.string(), "estimate or at_least; null if seconds_until_lost is null"),
        ]
    ),
)
