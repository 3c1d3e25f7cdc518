"""Defines the tables `group_lag`, `partition_status` and `lag_causes`."""

from __future__ import annotations

import pyarrow as pa

from streaming.delta.tables.columns import (
    GROUP,
    SAMPLED,
    SAMPLED_PARTITION,
    Table,
    boolean,
    column,
    float64,
    int32,
    int64,
    text,
    time,
)

OFFSET_DELETED = "offset_deleted"
NOT_SUBSCRIBED = "not_subscribed"
END_REASONS = frozenset({OFFSET_DELETED, NOT_SUBSCRIBED})
"""The values of `unknown_reason` in the last row of a partition (end row).

Either the committed offset no longer exists, or the group no longer reads the topic.
"""

GROUP_LAG = Table(
    "group_lag",
    "the lag of one group in one partition at one sample. Only partitions with a committed offset have rows. The"
    " monitor writes to the table every `sampling.lag_table_seconds`. Each time, it writes rows only for the"
    " partitions whose offsets, lag or unknown_reason changed since the previous time. If nothing changed, it writes"
    " one unchanged row, which proves that the monitor measured the cluster. The first time on each UTC date, it writes"
    " rows for all partitions. So if the offsets stand still, the last row of a partition can be up to one day old. All"
    " values of a row are those at `sampled_time`. If the group's commit for a partition was deleted or expired, or if"
    " the group no longer reads the topic, the monitor writes one final row for the partition. In this row,"
    f" `unknown_reason` is `{OFFSET_DELETED}` or `{NOT_SUBSCRIBED}`, and all other columns after `partition` are null",
    pa.schema(
        [
            *SAMPLED_PARTITION,
            int64(
                "committed_offset",
                "offset that the group committed. After a restart, the group reads from this offset. Null if the offset"
                " no longer exists, or if the group no longer reads the topic",
            ),
            time("commit_time", "time of the commit: the coordinator's timestamp, converted to the cluster's time"),
            int64("end_offset", "end offset of the partition. Null if the monitor could not sample the end offset"),
            int64(
                "log_start_offset",
                "log start offset of the partition. Null if the monitor could not sample the log start offset",
            ),
            int64(
                "lag",
                "number of records that the group has not committed. The value is `end_offset` minus"
                " `committed_offset`. If the log has no record at `committed_offset`, the value is `end_offset` minus"
                " the offset of the next record. So records that retention has deleted do not count, although"
                " `kafka-consumer-groups.sh` counts them. Null if unknown",
            ),
            text(
                "unknown_reason",
                "reason why the lag is unknown. The values are `blocked`, `commits_refused`, `topic_deleted`,"
                " `partition_deleted`, `no_end_offset`, `end_before_commit`, `maybe_only_markers`,"
                f" `{OFFSET_DELETED}` and `{NOT_SUBSCRIBED}`. `{OFFSET_DELETED}` means that the committed offset"
                " expired, or that it was deleted, for example together with the topic or with the group."
                f" `{NOT_SUBSCRIBED}` means that no member of the group reads the topic any more. The committed"
                " offset still exists",
            ),
            float64(
                "lag_seconds",
                "age of the oldest record that the group has not committed, in seconds, at `sampled_time`. While the"
                " offsets stand still, the partition usually gets no new row, but the age grows with the clock. Null if"
                " unknown",
            ),
            text(
                "lag_seconds_kind",
                "precision of `lag_seconds`. The value is `exact`, `at_least` or `unknown`. `at_least` means that the"
                " real age can be greater, because the record is older than every stored sample, or was written while"
                " the monitor took no samples. Null if"
                f" `unknown_reason` is `{OFFSET_DELETED}` or `{NOT_SUBSCRIBED}`",
            ),
            float64(
                "within_seconds",
                "largest possible error of `lag_seconds`, in seconds. Null if `lag_seconds_kind` is not `exact`",
            ),
            float64(
                "consumed_records_per_second",
                "mean growth of `committed_offset` over five minutes, in records per second. Null if unknown, for"
                " example in the first minute of observation, or shortly after `committed_offset` decreased",
            ),
            float64(
                "produced_records_per_second",
                "mean growth of `end_offset` in the last five minutes, in records per second. Null if unknown, for"
                " example in the first minute of observation, or shortly after the topic was created again",
            ),
        ]
    ),
)

PARTITION_STATUS = Table(
    "partition_status",
    "the status of one group in one partition at one sample. Only partitions with a committed offset have rows. The"
    " monitor writes to the table every `sampling.lag_table_seconds`. Each time, it writes rows only for the"
    " partitions whose `status` or `records_lost` changed since the previous time. The first time on each UTC date, it"
    " writes rows for all partitions. So the values of all other columns can be up to one day old. All values of a row"
    " are those at `sampled_time`. If the group's commit for a partition was deleted or expired, or if the group no"
    " longer reads the topic, the monitor writes one final row for the partition. In this row, all columns after"
    " `partition` are null",
    pa.schema(
        [
            *SAMPLED_PARTITION,
            text(
                "status",
                "status of the partition: OK, WARN, STOP, STALL or REWIND. The monitor derives the status from the"
                " last ten commits. Null if unknown",
            ),
            column(
                "status_rule",
                pa.int8(),
                "number of the rule that determined the status. The rules are in `streaming/evaluation/lag/status.py`."
                " If the number is 8 or 9, the column `status` is null. Rule 8: an open transaction begins at the next"
                " offset that the group has to read. Rule 9: it is possible that all unread offsets are transaction"
                " markers or records of aborted transactions",
            ),
            float64(
                "completeness",
                "number of commits from which the monitor derived the status, divided by ten. For example, the value is"
                " 0.5 if there are only five commits",
            ),
            int64(
                "committed_offset", "offset that the group committed. After a restart, the group reads from this offset"
            ),
            int64("lag", "number of records that the group has not committed yet, as in `group_lag`. Null if unknown"),
            int64(
                "records_lost",
                "number of records that retention deleted before the group committed them. The value can be too high,"
                " because it includes offsets without a record. Null if unknown",
            ),
            time("lost_since_time", "time when the loss of records started. Null if no records are lost"),
            text(
                "lost_since_kind",
                "precision of `lost_since_time`. The value is `exact` or `at_least`. `at_least` means that the loss"
                " started at this time or earlier. Null if no records are lost",
            ),
            float64(
                "seconds_until_lost",
                "estimated seconds from `sampled_time` until retention deletes records that the group has not"
                " committed. The value is 0 if retention has already deleted unread records. Null if unknown, if there"
                " is neither lag nor loss, or if the topic has no retention. The monitor computes the estimate from the"
                " growth rate of the log start offset, and from the topic's `retention.ms`. If the topic's"
                " `retention.bytes` is -1, the estimate usually does not use the growth rate",
            ),
            text(
                "seconds_until_lost_kind",
                "precision of `seconds_until_lost`. The value is `estimate` or `at_least`. `at_least` means that the"
                " real time can be longer. Null if `seconds_until_lost` is null",
            ),
        ]
    ),
)

LAG_CAUSES = Table(
    "lag_causes",
    "the start or the end of one cause of lag. `sampled_time` is the time of the first sample that showed the start or"
    " the end. A group has at most one cause at a time. At the first sample of each UTC date, the monitor writes the"
    " row of every active cause again",
    pa.schema(
        [
            *SAMPLED,
            GROUP,
            text(
                "cause",
                "name of the cause: `rebalancing`, `stopped`, `hot_partition`, `assignment`, `slow_member`,"
                " `slow_host`, `under_provisioned` or `unknown`. The rules are in"
                " `streaming/evaluation/causes/cause_of_lag.py`",
            ),
            boolean("active", "true if the cause is active. false if the cause ended"),
            boolean(
                "is_repeated",
                "false in the row in which the cause started or ended. true in the row that the monitor adds on each"
                " later UTC date while the cause is active",
            ),
            time("since_time", "time of the first sample with this cause"),
            text(
                "reason",
                "reason for the cause `stopped` or `unknown`. The reasons for `stopped` are `no_members`, `no_owner`"
                " and `no_commits`. The reasons for `unknown` are `open_transaction`, `owners_unknown`,"
                " `rates_unknown`, `catching_up` and `no_rule`. Empty for all other causes",
            ),
            text(
                "topic",
                "topic of the hot partition, or of one partition without an owner (reason `no_owner`). Null for all"
                " other causes",
            ),
            int32(
                "partition",
                "partition number of the hot partition, or of one partition without an owner (reason `no_owner`). Null"
                " for all other causes",
            ),
            text(
                "member",
                "name of the member that the cause concerns: the owner of the hot partition, the overloaded member"
                " (cause `assignment`) or the slow member. Null for all other causes",
            ),
            text("client_id", "client id of the member in the column `member`"),
            text("client_host", "host of the member in the column `member`, or the slow host"),
            text("text", "description of the cause, with the values that were measured when the cause started"),
        ]
    ),
)
