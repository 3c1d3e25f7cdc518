"""Lag: these metrics show the lag of each group in records and in seconds, and the status of the group.

All values come from the last sample of the brokers.
"""

from __future__ import annotations

from typing import Final

from streaming.signals.signal import OF_A_GROUP, PARTITION, Signal

GROUP_LAG: Final = Signal(
    name="rebalance_monitor_group_lag",
    unit="records",
    help="Number of records that the group has not committed yet. Records that retention has deleted do not count,"
    " although `kafka-consumer-groups.sh` counts them.",
    unknown="The lag of at least one partition is unknown. The metric `rebalance_monitor_lag_unknown_partitions` shows"
    " the reason.",
    example="topk(10, rebalance_monitor_group_lag)",
)
GROUP_LAG_SECONDS: Final = Signal(
    name="rebalance_monitor_group_lag_seconds",
    unit="seconds",
    help="Age of the oldest record that the group has not committed, in seconds. The value is the maximum over all"
    " partitions with known lag.",
    unknown="The lag in seconds of every partition is unknown.",
    example="rebalance_monitor_group_lag_seconds > 600",
)
GROUP_LAG_SECONDS_IS_BOUND: Final = Signal(
    name="rebalance_monitor_group_lag_seconds_is_bound",
    unit="boolean",
    help="The value is 1 if `rebalance_monitor_group_lag_seconds` is only a lower bound. The exact age of the"
    " group's oldest unread record is unknown in two cases. The record can be older than the oldest sample of the end"
    " offset. Or the record was written in a time without samples, for example while the monitor was off. The lower"
    " bound is the age of the first sample after the record was written.",
    unknown="The group's lag in seconds is exact or unknown.",
    example="rebalance_monitor_group_lag_seconds and on (cluster, group) rebalance_monitor_group_lag_seconds_is_bound",
)
LAG_UNKNOWN_PARTITIONS: Final = Signal(
    name="rebalance_monitor_lag_unknown_partitions",
    unit="partitions",
    labels=(*OF_A_GROUP, "reason"),
    label_values={
        "reason": (
            "blocked",
            "commits_refused",
            "topic_deleted",
            "partition_deleted",
            "no_end_offset",
            "end_before_commit",
            "maybe_only_markers",
        )
    },
    help="Number of the group's partitions with unknown lag, by reason.",
    unknown="The lag of every partition is known.",
    example='sum by (cluster, group) (rebalance_monitor_lag_unknown_partitions{reason!="topic_deleted"})',
)
GROUP_BLOCKED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_group_blocked_partitions",
    unit="partitions",
    help="Number of partitions in which an open transaction blocks the group. The group has reached the first record of"
    " the transaction. A consumer with read_committed cannot read this record or later records until the transaction"
    " ends.",
    unknown="No partition of the group is blocked by an open transaction. The series is also absent if an open"
    " transaction blocks the group's partition of `__consumer_offsets`.",
    example="rebalance_monitor_group_blocked_partitions > 0",
)
GROUP_STATUS: Final = Signal(
    name="rebalance_monitor_group_status",
    unit="boolean",
    labels=(*OF_A_GROUP, "status"),
    label_values={"status": ("OK", "WARN", "STOP", "STALL", "REWIND")},
    help="The value is 1 for the current status of the group. The status of a group is the worst status of its"
    " partitions. The other statuses of the group have no series.",
    unknown="The status of every partition is unknown.",
    example='rebalance_monitor_group_status{status=~"STOP|STALL|REWIND"}',
)
GROUP_STATUS_COMPLETENESS: Final = Signal(
    name="rebalance_monitor_group_status_completeness",
    unit="share",
    granularity=PARTITION,
    help="Share of the group's partitions that have a status based on ten commits. The value is from 0 to 1. A status"
    " that is based on fewer than ten commits is less reliable.",
    unknown="The group never committed an offset, or an open transaction blocks the group's partition of"
    " `__consumer_offsets`.",
    example="avg by (cluster) (rebalance_monitor_group_status_completeness)",
)
GROUP_RECORDS_LOST: Final = Signal(
    name="rebalance_monitor_group_records_lost",
    unit="records",
    help="Number of records that retention deleted before the group committed them. The value also counts offsets"
    " without a record, so the real number of lost records can be smaller. The value ignores partitions for which the"
    " number is unknown. Before the monitor reports a loss, it reads all commits that are older than the deletion. So a"
    " loss can appear some seconds late.",
    unknown="No partition of the group is known to have lost records.",
    example="rebalance_monitor_group_records_lost > 0",
)
GROUP_SECONDS_UNTIL_LOST: Final = Signal(
    name="rebalance_monitor_group_seconds_until_lost",
    unit="seconds",
    help="Estimated time until retention deletes records that the group has not committed, in seconds. The value is 0"
    " if retention has already deleted unread records. The monitor computes two estimates and exports the smaller"
    " estimate. The first estimate uses the growth rate of the log start offset. The second estimate uses the topic's"
    " retention.ms and the lag in seconds. If the topic's retention.bytes is -1, the monitor usually uses only the"
    " second estimate.",
    unknown="The estimated time is longer than one day, or no partition of the group has an estimate. A partition has"
    " no estimate if its lag is zero or unknown, or if the topic has no retention. An estimate needs the growth rate of"
    " the log start offset, or the topic's retention.ms. The monitor knows this growth rate if the log start offset"
    " increased at least two times in the last 24 hours and if the next increase is not overdue. To read retention.ms"
    " and retention.bytes, the monitor needs the permission DESCRIBE_CONFIGS on the topic.",
    example="rebalance_monitor_group_seconds_until_lost < 3600",
)
GROUP_LAST_COMMIT_TIMESTAMP_SECONDS: Final = Signal(
    name="rebalance_monitor_group_last_commit_timestamp_seconds",
    unit="seconds",
    help="Time of the group's latest commit, in seconds since 1970.",
    unknown="The group never committed an offset, or an open transaction blocks the group's partition of"
    " `__consumer_offsets`.",
    example="time() - rebalance_monitor_group_last_commit_timestamp_seconds > 600 and rebalance_monitor_group_lag > 0",
)
GROUP_CONSUMED_RECORDS_PER_SECOND: Final = Signal(
    name="rebalance_monitor_group_consumed_records_per_second",
    unit="records per second",
    help="Consume rate of the group, in records per second. The rate is the mean growth of the committed offsets over"
    " five minutes, usually the five minutes before the last commit. The value is the sum over all partitions. If the"
    " group commits no new offsets, the value falls to 0 within ten minutes. Retention can delete unread records in the"
    " time between two commits. If this possibly happened, the rate does not count the growth of the committed offset"
    " from the first to the second commit.",
    unknown="The rate of at least one partition is unknown. The rate of a partition is unknown until the monitor has"
    " observed the partition for one minute, and for a short time after the committed offset decreased.",
    example="rebalance_monitor_group_consumed_records_per_second == 0 and rebalance_monitor_group_lag > 0",
)
GROUP_PRODUCED_RECORDS_PER_SECOND: Final = Signal(
    name="rebalance_monitor_group_produced_records_per_second",
    unit="records per second",
    help="Produce rate of the group's partitions, in records per second. The rate is the mean growth of the end offsets"
    " in the last five minutes. The value is the sum over all partitions with a committed offset.",
    unknown="The rate of at least one partition is unknown. The rate of a partition is unknown until the monitor has"
    " observed the partition for one minute, and for a short time after the topic was deleted and created again.",
    example="rebalance_monitor_group_produced_records_per_second > rebalance_monitor_group_consumed_records_per_second",
)
GROUP_CATCH_UP_SECONDS: Final = Signal(
    name="rebalance_monitor_group_catch_up_seconds",
    unit="seconds",
    help="Estimated time until the group has no lag, in seconds. The value is lag / (consume rate - produce rate)."
    " The estimate assumes that the consume rate and the produce rate do not change.",
    unknown="The group has no lag, or the produce rate is at least 98 % of the consume rate. The series is also absent"
    " if the lag or one of the rates is unknown.",
    example="rebalance_monitor_group_catch_up_seconds > 3600",
)
GROUP_OFFSETS_EXPIRE_TIMESTAMP_SECONDS: Final = Signal(
    name="rebalance_monitor_group_offsets_expire_timestamp_seconds",
    unit="seconds",
    help="Earliest time when the broker can delete a committed offset of the group, in seconds since 1970. After the"
    " deletion, the group starts again at the position that auto.offset.reset selects. The broker setting"
    " offsets.retention.minutes is the retention period of committed offsets. For a classic group with a protocol type,"
    " the retention period starts when the group becomes Empty. For all other groups, the retention period of each"
    " offset starts when the group commits the offset. The monitor does not read the retention time that OffsetCommit"
    " requests of version 2 to 4 can contain. With such a retention time, an offset can expire earlier or later than"
    " this value.",
    unknown="The group has members, or the group has no committed offset. The series is also absent if the setting"
    " offsets.retention.minutes is unknown, or if `source.kind` is `admin-api`.",
    example="rebalance_monitor_group_offsets_expire_timestamp_seconds - time() < 86400",
)
GROUP_LAG_CAUSE_INFO: Final = Signal(
    name="rebalance_monitor_group_lag_cause_info",
    unit="boolean",
    labels=(*OF_A_GROUP, "cause", "topic", "partition", "client_id", "client_host"),
    label_values={
        "cause": (
            "rebalancing",
            "stopped",
            "hot_partition",
            "assignment",
            "slow_member",
            "slow_host",
            "under_provisioned",
            "unknown",
            "no_members",
            "open_transaction",
        )
    },
    help="The labels describe the cause of the group's lag. The value is always 1. The label `cause` names the cause."
    " Each of the other labels is empty, or names the partition, member or client host that causes the lag. The group's"
    " page shows the evidence for the cause.",
    unknown="No partition of the group is late. A partition is behind if its lag is 30 seconds or more now, and was"
    " 30 seconds or more at the last commit. A partition that an open transaction blocks is also behind if its lag is"
    " 3 minutes or more. A partition is late if it has been behind for one minute. A partition with the status STOP is"
    " late as soon as its lag is 30 seconds or more. The series is also absent if an open transaction blocks the"
    " group's partition of `__consumer_offsets`.",
    example='rebalance_monitor_group_lag_cause_info{cause="hot_partition"}',
)
GROUP_WORST_PARTITION_INFO: Final = Signal(
    name="rebalance_monitor_group_worst_partition_info",
    unit="boolean",
    labels=(*OF_A_GROUP, "topic", "partition", "client_id", "client_host", "group_instance_id"),
    help="The labels name the partition with the largest lag in seconds, and the owner of this partition. The value is"
    " always 1. The series exists only if the group's lag in seconds is above the group's limit `max_lag_seconds`. The"
    " labels of the owner are empty if the partition has no owner, or if the owner is unknown.",
    unknown="The group's lag in seconds is not above `max_lag_seconds`, or is unknown.",
    example="rebalance_monitor_group_worst_partition_info * on (cluster, group) group_left"
    " rebalance_monitor_group_lag_seconds",
)
