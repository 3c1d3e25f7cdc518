"""The monitor itself: these metrics show the readiness, the progress and the resources of the monitor."""

from __future__ import annotations

from functools import partial
from typing import Final

from streaming.signals.signal import CLUSTER, COUNTER, HISTOGRAM, OF_A_CLUSTER, Signal

_signal = partial(Signal, labels=OF_A_CLUSTER, granularity=CLUSTER)
_ALWAYS = "None, because the series always exists."

READY: Final = _signal(
    name="rebalance_monitor_ready",
    unit="boolean",
    help="The value is 1 if the monitor is ready, and 0 if the monitor is not ready. The monitor is ready if it has"
    " read its source to the end, is not far behind the end now, and has a recent sample of the brokers. While the"
    " value is 0, the monitor exports no metrics of groups, topics and brokers.",
    unknown=_ALWAYS,
    example="rebalance_monitor_ready == 0",
)
WAITING_FOR_OFFSETS_TOPIC: Final = _signal(
    name="rebalance_monitor_waiting_for_offsets_topic",
    unit="boolean",
    help="The value is 1 while the monitor waits until the topic __consumer_offsets exists, and 0 otherwise. Kafka"
    " creates the topic at the first commit of a consumer group. If a managed cluster hides the topic, the value stays"
    " 1.",
    unknown=_ALWAYS,
    example="rebalance_monitor_waiting_for_offsets_topic == 1",
)
MONITOR_INFO: Final = _signal(
    name="rebalance_monitor_info",
    unit="boolean",
    labels=(*OF_A_CLUSTER, "version", "source", "page_url", "grafana_url", "runbook_url"),
    label_values={"source": ("offsets-topic", "admin-api")},
    help="The labels describe the version, the source and the links of the monitor. The value is always 1. The label"
    " `version` is the version of the monitor. The label `source` is the setting `source.kind`. With `offsets-topic`,"
    " the monitor reads groups and commits from the topic __consumer_offsets. With `admin-api`, the monitor polls the"
    " group coordinators. The labels `page_url`, `grafana_url` and `runbook_url` are the addresses from the settings in"
    " `[links]`. Alerts contain links to these addresses. A label is empty if its setting is empty.",
    unknown=_ALWAYS,
    example='rebalance_monitor_info{source="admin-api"}',
)
SOURCE_LIMITATION: Final = _signal(
    name="rebalance_monitor_source_limitation_info",
    unit="boolean",
    labels=(*OF_A_CLUSTER, "capability"),
    label_values={
        "capability": (
            "generation_id",
            "leader",
            "rebalances_between_polls",
            "rebalances_failed",
            "sync_time",
            "pending_revocation",
            "commit_time",
            "transactions",
            "hidden_groups",
            "offsets_retention",
            "topic_retention",
        )
    },
    help="The value is 1 for each type of information that the monitor cannot get. The label `capability` names the"
    " type of information. For `offsets_retention` and `topic_retention`, the monitor needs the optional permission"
    " DESCRIBE_CONFIGS. All other types of information have series only if `source.kind` is `admin-api`.",
    unknown="The monitor can get this type of information.",
    example='rebalance_monitor_source_limitation_info{capability="hidden_groups"}',
)
RECORDS_READ: Final = _signal(
    name="rebalance_monitor_records_read_total",
    kind=COUNTER,
    unit="records",
    labels=(*OF_A_CLUSTER, "kind"),
    help="Number of records that the monitor has read, by type of record.",
    unknown="The monitor has not read any record of this type.",
    example="sum by (cluster) (rate(rebalance_monitor_records_read_total[5m]))",
)
RECORDS_SKIPPED: Final = _signal(
    name="rebalance_monitor_records_skipped_total",
    kind=COUNTER,
    unit="records",
    labels=(*OF_A_CLUSTER, "reason"),
    help="Number of records that the monitor skipped, by reason. If the monitor cannot decode the data of one member"
    " in a record, it skips only this data. The value also counts such a record. The table `quarantine` describes all"
    " skipped records, except records with the reason `foreign_partition`.",
    unknown="The monitor has not skipped any record for this reason.",
    example="increase(rebalance_monitor_records_skipped_total[1h]) > 0",
)
OFFSETS_TOPIC_LAG: Final = _signal(
    name="rebalance_monitor_offsets_topic_lag",
    unit="records",
    labels=(*OF_A_CLUSTER, "partition"),
    help="Number of records of __consumer_offsets that the monitor has not read yet, by partition. The value counts"
    " records up to the high watermark.",
    unknown="The partition was not sampled recently, or `source.kind` is `admin-api`.",
    example="sum by (cluster) (rebalance_monitor_offsets_topic_lag)",
)
OFFSETS_TOPIC_BLOCKED: Final = _signal(
    name="rebalance_monitor_offsets_topic_blocked",
    unit="records",
    labels=(*OF_A_CLUSTER, "partition"),
    help="Number of records of __consumer_offsets that the monitor cannot read because of an open transaction, by"
    " partition. If the transaction was already open at the previous sample, the states of the groups in this"
    " partition are unknown.",
    unknown="The partition was not sampled recently, or `source.kind` is `admin-api`.",
    example="rebalance_monitor_offsets_topic_blocked > 0",
)
OFFSETS_TOPIC_LAST_STABLE_OFFSET: Final = _signal(
    name="rebalance_monitor_offsets_topic_last_stable_offset",
    unit="offset",
    labels=(*OF_A_CLUSTER, "partition"),
    help="Last stable offset of the __consumer_offsets partition. The last stable offset is the first offset of the"
    " oldest open transaction. If no transaction is open, the value is the high watermark.",
    unknown="The partition was not sampled recently, or `source.kind` is `admin-api`.",
    example="changes(rebalance_monitor_offsets_topic_last_stable_offset[5m]) == 0",
)
OFFSETS_TOPIC_LEADERLESS_PARTITIONS: Final = _signal(
    name="rebalance_monitor_offsets_topic_leaderless_partitions",
    unit="partitions",
    help="Number of __consumer_offsets partitions without a leader. The groups in these partitions have no coordinator,"
    " so they cannot commit and cannot rebalance. While any partition of __consumer_offsets has no leader, the"
    " source `offsets-topic` reads no partition.",
    unknown="The brokers were not sampled recently, or the cluster metadata does not contain the topic"
    " __consumer_offsets.",
    example="rebalance_monitor_offsets_topic_leaderless_partitions > 0",
)
CLOCK_OFFSET_SECONDS: Final = _signal(
    name="rebalance_monitor_clock_offset_seconds",
    unit="seconds",
    labels=(*OF_A_CLUSTER, "broker"),
    help="Difference between the broker's clock and the monitor's clock, in seconds. A positive value means that the"
    " broker's clock is ahead of the monitor's clock. The monitor estimates the value from the timestamps of records.",
    unknown="In the last ten minutes, the broker wrote too few records for an estimate. The series is also absent if"
    " `source.kind` is `admin-api`.",
    example="max by (cluster, broker) (abs(rebalance_monitor_clock_offset_seconds))",
)
CLOCK_OFFSET_WITHIN_SECONDS: Final = _signal(
    name="rebalance_monitor_clock_offset_within_seconds",
    unit="seconds",
    labels=(*OF_A_CLUSTER, "broker"),
    help="Largest possible error of `rebalance_monitor_clock_offset_seconds`, in seconds.",
    unknown="The clock offset is unknown.",
    example="rebalance_monitor_clock_offset_within_seconds > 5",
)
BATCH_DURATION_SECONDS: Final = _signal(
    name="rebalance_monitor_batch_duration_seconds",
    kind=HISTOGRAM,
    unit="seconds",
    help="Durations of Spark's micro-batches since the start of the monitor, in seconds. A batch ends when the monitor"
    " has written the batch's rows to all tables.",
    unknown="The monitor has not finished a batch since its start.",
    example="histogram_quantile(0.9, sum by (cluster, le)"
    " (rate(rebalance_monitor_batch_duration_seconds_bucket[15m])))",
)
LAST_BATCH_TIMESTAMP_SECONDS: Final = _signal(
    name="rebalance_monitor_last_batch_timestamp_seconds",
    unit="seconds",
    help="End time of the last finished micro-batch, in seconds since 1970.",
    unknown="The monitor has not finished a batch since its start.",
    example="time() - rebalance_monitor_last_batch_timestamp_seconds > 900"
    " and on (cluster) sum by (cluster) (rebalance_monitor_offsets_topic_lag) > 0",
)
TABLE_WRITE_FAILURES: Final = _signal(
    name="rebalance_monitor_table_write_failures_total",
    kind=COUNTER,
    unit="failures",
    help="Number of failed writes to Delta tables since the start of the monitor. The monitor retries each failed"
    " write.",
    unknown=_ALWAYS,
    example="increase(rebalance_monitor_table_write_failures_total[15m]) > 0",
)
DISK_FREE_RATIO: Final = _signal(
    name="rebalance_monitor_disk_free_ratio",
    unit="ratio",
    labels=(*OF_A_CLUSTER, "folder"),
    label_values={"folder": ("checkpoint", "tables")},
    help="Free space on the disk that contains the folder, divided by the size of the disk. The value is from 0 to 1."
    " The label `folder` is the name of the setting in `[paths]`.",
    unknown="The folder is not on a disk of this machine. For example, the folder is in an object store.",
    example="rebalance_monitor_disk_free_ratio < 0.1",
)
STATE_ROWS: Final = _signal(
    name="rebalance_monitor_state_rows",
    unit="rows",
    help="Number of rows in the monitor's state. Each group has one row, and each `__consumer_offsets` partition has"
    " one row.",
    unknown="The monitor started a short time ago, and has not loaded its state or read a record yet.",
    example="deriv(rebalance_monitor_state_rows[1d])",
)
QUERY_RESTARTS: Final = _signal(
    name="rebalance_monitor_query_restarts_total",
    kind=COUNTER,
    unit="restarts",
    help="Number of times that the monitor restarted the streaming query after a failure. If the monitor watches"
    " several clusters, the value also counts failed attempts to watch the cluster, for example failed connections to"
    " its brokers.",
    unknown=_ALWAYS,
    example="increase(rebalance_monitor_query_restarts_total[15m]) > 0",
)
DROPPED_SERIES: Final = _signal(
    name="rebalance_monitor_dropped_series",
    unit="series",
    labels=(*OF_A_CLUSTER, "reason"),
    label_values={"reason": ("max_series",)},
    help="Number of series that are missing in this scrape because the limit `metrics.max_series` is reached. The value"
    " does not count series that `metrics.exclude` or `metrics.granularity` removes.",
    unknown=_ALWAYS,
    example="rebalance_monitor_dropped_series > 0",
)
RESIDENT_MEMORY_BYTES: Final = _signal(
    name="rebalance_monitor_resident_memory_bytes",
    unit="bytes",
    help="Resident memory of all processes of the monitor, in bytes. The value is the same for all clusters, because"
    " the same processes watch all clusters.",
    unknown=_ALWAYS,
    example="max(max_over_time(rebalance_monitor_resident_memory_bytes[1h]))",
)
