"""Defines the tables of the lag and the status of committed partitions, and of the causes of lag."""

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
    "the lag of one group in one partition at one sample. Only partitions with a committed offset have rows. The"
    " monitor writes a row only if a value changed since the last sample. The first write of each UTC date contains all"
    " partitions. If a committed offset no longer exists, the monitor writes one last row: unknown_reason is"
    f" {OFFSET_DELETED}, and all numbers are null",
    pa.schema(
        [
            *SAMPLED_PARTITION,
            column(
                "committed_offset",
                pa.int64(),
                "offset that the group committed. The group continues to read at this offset. Null if the offset no"
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
                "number of records that the group has not committed: end_offset - committed_offset. If there are no"
                " records at committed_offset, the lag is counted from the next record. Null if unknown",
            ),
            column(
                "unknown_reason",
                pa.string(),
                "reason why the lag is unknown: blocked, topic_deleted, partition_deleted, no_end_offset,"
                f" end_before_commit, maybe_only_markers, {OFFSET_DELETED} (the committed offset no longer exists,"
                " because the group, the topic or the offset was deleted, or because the offset expired)",
            ),
            column(
                "lag_seconds",
                pa.float64(),
                "age of the oldest record that the group has not committed, in seconds. Null if unknown",
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
                "growth of committed_offset in records per second, as the mean of the last five minutes. Null if"
                " unknown, for example during the first minute, or after committed_offset decreased",
            ),
            column(
                "produced_records_per_second",
                pa.float64(),
                "growth of end_offset in records per second, as the mean of the last five minutes. Null if unknown, for"
                " example during the first minute, or after the topic was deleted and created again",
            ),
        ]
    ),
)

PARTITION_STATUS = Table(
    "partition_status",
    "the status of one group in one partition at one sample. Only partitions with a committed offset have rows. The"
    " monitor writes a row only if status or records_lost changed since the last sample. The first write of each UTC"
    " date contains all partitions. If a committed offset no longer exists, the monitor writes one last row, and its"
    " values are null",
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
                "number of the rule that determined the status. streaming/evaluation/lag/status.py contains the rules."
                " The status is unknown after rule 8 (the group has read everything before an open transaction) and"
                " rule 9 (all unread offsets may be transaction markers or records of aborted transactions)",
            ),
            column(
                "completeness",
                pa.float64(),
                "number of the last ten commits that the monitor knows, divided by ten",
            ),
            column(
                "committed_offset",
                pa.int64(),
                "offset that the group committed. The group continues to read at this offset",
            ),
            column("lag", pa.int64(), "number of records that the group has not committed yet. Null if unknown"),
            column(
                "records_lost",
                pa.int64(),
                "number of offsets that retention deleted before the group committed them. Null if unknown",
            ),
            column("lost_since_time", TIME, "time when the loss of records started. Null if no records are lost"),
            column(
                "lost_since_kind",
                pa.string(),
                "precision of lost_since_time: exact, or at_least if the loss started before the oldest stored sample."
                " Null if no records are lost",
            ),
            column(
                "seconds_until_lost",
                pa.float64(),
                "estimated time until retention deletes records that the group has not committed, in seconds. 0 if such"
                " records are already deleted. Null if unknown, or if there is no lag. The estimate uses the growth"
                " rate of the log start offset and the topic's retention.ms",
            ),
            column(
                "seconds_until_lost_kind",
                pa.string(),
                "precision of seconds_until_lost: estimate, or at_least if the real time can be longer. Null if"
                " seconds_until_lost is null",
            ),
        ]
    ),
)

LAG_CAUSES = Table(
    "lag_causes",
    "the start or the end of the cause of a group's lag, as seen at one sample. A group has at most one cause at a"
    " time. The first sample of each UTC date repeats the row of every active cause",
    pa.schema(
        [
            *SAMPLED,
            GROUP,
            column(
                "cause",
                pa.string(),
                "name of the cause: rebalancing, stopped, hot_partition, assignment, slow_member, slow_host,"
                " under_provisioned or unknown. The rules are in streaming/evaluation/causes/cause_of_lag.py",
            ),
            column("active", pa.bool_(), "true if the cause started. false if the cause ended"),
            column("is_repeated", pa.bool_(), "true if the row repeats a cause that started on an earlier UTC date"),
            column("since_time", TIME, "time of the first sample with this cause"),
            column(
                "reason",
                pa.string(),
                "reason why the monitor reports this cause. For stopped: no_members, no_owner or no_commits. For"
                " unknown: open_transaction, owners_unknown, rates_unknown, catching_up or no_rule. Empty for all other"
                " causes",
            ),
            column(
                "topic",
                pa.string(),
                "topic of the partition that the cause concerns. Null if the cause does not concern a single partition",
            ),
            column(
                "partition",
                pa.int32(),
                "number of this partition. Null if the cause does not concern a single partition",
            ),
            column(
                "member",
                pa.string(),
                "name of the member that the cause concerns. Null if the cause does not concern a single member",
            ),
            column("client_id", pa.string(), "client id of this member"),
            column("client_host", pa.string(), "host of this member, or the slow host"),
            column("text", pa.string(), "sentences that describe the cause and its evidence at the start of the cause"),
        ]
    ),
)
