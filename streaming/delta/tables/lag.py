"""Defines three tables: the lag of committed partitions at each sample, their status, and the causes of lag."""

from __future__ import annotations

import pyarrow as pa

from streaming.delta.tables.columns import (
    GROUP,
    SAMPLED,
    SAMPLED_PARTITION,
    TIME,
    Table,
    column,
)

OFFSET_DELETED = "offset_deleted"
"""The `unknown_reason` in the last row of a partition whose committed offset no longer exists."""

GROUP_LAG = Table(
    "group_lag",
    "one committed partition of one group at one sample. The monitor writes a row only if a value of the row changed"
    " since the last sample. The first write of each date contains all partitions. If a committed offset no longer"
    f" exists, the monitor writes one last row: unknown_reason is {OFFSET_DELETED}, and all numbers are null",
    pa.schema(
        [
            *SAMPLED_PARTITION,
            column(
                "committed_offset",
                pa.int64(),
                "committed offset of the group. The group continues to read at this offset. Null if the offset no"
                " longer exists",
            ),
            column("commit_time", TIME, "the coordinator's timestamp of the commit"),
            column(
                "end_offset",
                pa.int64(),
                "end offset of the partition. Null if the monitor could not sample the end offset",
            ),
            column(
                "log_start_offset",
                pa.int64(),
                "log start offset of the partition. Null if the monitor could not sample the log start offset",
            ),
            column(
                "lag",
                pa.int64(),
                "end_offset - committed_offset. Offsets without a record do not count if they come before the next"
                " record. Null if unknown",
            ),
            column(
                "unknown_reason",
                pa.string(),
                "reason why the lag is unknown: blocked, topic_deleted, partition_deleted, no_end_offset,"
                f" end_before_commit, maybe_only_markers, {OFFSET_DELETED} (the group, the topic or the offset was"
                " deleted, or the offset expired. The partition has no lag until the group commits again)",
            ),
            column(
                "lag_seconds",
                pa.float64(),
                "age of the next record that the group must read, in seconds. Null if unknown",
            ),
            column(
                "lag_seconds_kind",
                pa.string(),
                "precision of lag_seconds: exact, at_least (the record is older than every stored sample) or unknown."
                f" Null if unknown_reason is {OFFSET_DELETED}",
            ),
            column(
                "within_seconds",
                pa.float64(),
                "largest possible error of lag_seconds, in seconds. Null if lag_seconds_kind is not exact",
            ),
            column(
                "consumed_records_per_second",
                pa.float64(),
                "growth of committed_offset in records per second. The value is the mean of the last five minutes."
                " Null if unknown, for example during the first minute, or after committed_offset went back",
            ),
            column(
                "produced_records_per_second",
                pa.float64(),
                "growth of end_offset in records per second. The value is the mean of the last five minutes. Null if"
                " unknown, for example during the first minute, or after the topic was created again",
            ),
        ]
    ),
)

PARTITION_STATUS = Table(
    "partition_status",
    "the status of one committed partition of one group at one sample. The monitor writes a row only if status or"
    " records_lost changed since the last sample. The first write of each date contains all partitions. If a committed"
    " offset no longer exists, the monitor writes one last row, whose values are null",
    pa.schema(
        [
            *SAMPLED_PARTITION,
            column(
                "status",
                pa.string(),
                "status of the partition: OK, WARN, STOP, STALL or REWIND. The monitor derives the status from the"
                " last ten commits. Null if unknown",
            ),
            column(
                "status_rule",
                pa.int8(),
                "number of the rule that determined the status. streaming/evaluation/lag/status.py contains the"
                " rules. Two rules mean that the status is unknown: 8 (an open transaction blocks the group) and 9"
                " (maybe only transaction markers or aborted records are left)",
            ),
            column(
                "completeness",
                pa.float64(),
                "share of the last ten commits that the monitor knows, as a number from 0 to 1",
            ),
            column(
                "committed_offset",
                pa.int64(),
                "committed offset of the group. The group continues to read at this offset",
            ),
            column("lag", pa.int64(), "number of records that the group has not committed yet. Null if unknown"),
            column(
                "records_lost",
                pa.int64(),
                "number of offsets that retention deleted before the group committed them. Null if unknown",
            ),
            column("lost_since_time", TIME, "time at which the loss of records started. Null if no records are lost"),
            column(
                "lost_since_kind",
                pa.string(),
                "precision of lost_since_time: exact or at_least (the records were lost before the oldest stored"
                " sample). Null if no records are lost",
            ),
            column(
                "seconds_until_lost",
                pa.float64(),
                "estimated time until retention deletes records that the group has not committed, in seconds. The"
                " estimate uses the current growth rate of the log start offset and the topic's retention.ms. 0 if"
                " records are already lost. Null if unknown, or if there is no lag",
            ),
            column(
                "seconds_until_lost_kind",
                pa.string(),
                "precision of seconds_until_lost: estimate or at_least. Null if seconds_until_lost is null",
            ),
        ]
    ),
)

LAG_CAUSES = Table(
    "lag_causes",
    "the start or end of the cause of a group's lag, at one sample. A group has at most one cause at a time. If an"
    " active cause has no row on a UTC date, its row is repeated at the first sample of this date",
    pa.schema(
        [
            *SAMPLED,
            GROUP,
            column(
                "cause",
                pa.string(),
                "rebalancing, stopped, hot_partition, assignment, slow_member, slow_host, under_provisioned or"
                " unknown. The rules are in streaming/evaluation/causes/cause_of_lag.py",
            ),
            column("active", pa.bool_(), "true: the cause started; false: the cause ended"),
            column("is_repeated", pa.bool_(), "true: the row repeats a cause that began on an earlier UTC date"),
            column("since_time", TIME, "time of the first sample with this cause"),
            column(
                "reason",
                pa.string(),
                "reason of the cause. For stopped: no_members, no_owner or no_commits. For unknown: open_transaction,"
                " owners_unknown, rates_unknown, catching_up or no_rule. Empty for all other causes",
            ),
            column("topic", pa.string(), "topic of the partition that the cause names; null if it names no partition"),
            column("partition", pa.int32(), "number of this partition; null if the cause names no partition"),
            column("member", pa.string(), "name of the member that the cause names; null if it names no member"),
            column("client_id", pa.string(), "client id of this member"),
            column("client_host", pa.string(), "host of this member, or the slow host"),
            column("text", pa.string(), "the cause and its evidence when the cause started"),
        ]
    ),
)
