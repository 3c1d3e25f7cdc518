"""The monitor itself: whether to believe what it says, how far it has read, and what it costs."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from streaming.signals.signal import CLUSTER, COUNTER, OF_A_CLUSTER, Signal

_ALWAYS = "It is always there."

READY: Final = Signal(
    name="rebalance_monitor_ready",
    unit="boolean",
    labels=OF_A_CLUSTER,
    granularity=CLUSTER,
    help="1 when caught up with the log and in touch with the brokers.",
    unknown=_ALWAYS,
    example="rebalance_monitor_ready == 0",
)
SOURCE: Final = Signal(
    name="rebalance_monitor_source",
    unit="boolean",
    labels=(*OF_A_CLUSTER, "source"),
    label_values=MappingProxyType({"source": ("offsets-topic", "admin-api")}),
    granularity=CLUSTER,
    help="1 for where groups and commits are known from.",
    unknown=_ALWAYS,
    example='rebalance_monitor_source{source="admin-api"}',
)
UNKNOWN: Final = Signal(
    name="rebalance_monitor_unknown",
    unit="boolean",
    labels=(*OF_A_CLUSTER, "what"),
    label_values=MappingProxyType(
        {
            "what": (
                "generation_id",
                "leader",
                "rebalances_between_polls",
                "rebalances_failed",
                "sync_time",
                "pending_revocation",
                "commit_time",
                "transactions",
                "hidden_groups",
            )
        }
    ),
    granularity=CLUSTER,
    help="1 for each thing this source cannot tell.",
    unknown="The source can tell it.",
    example='rebalance_monitor_unknown{what="hidden_groups"}',
)
RECORDS_READ: Final = Signal(
    name="rebalance_monitor_records_read_total",
    kind=COUNTER,
    unit="records",
    labels=(*OF_A_CLUSTER, "kind"),
    granularity=CLUSTER,
    help="Records read, by kind.",
    unknown="None of that kind was read.",
    example="sum by (cluster) (rate(rebalance_monitor_records_read_total[5m]))",
)
RECORDS_SKIPPED: Final = Signal(
    name="rebalance_monitor_records_skipped_total",
    kind=COUNTER,
    unit="records",
    labels=(*OF_A_CLUSTER, "reason"),
    granularity=CLUSTER,
    help="Records that were not used, or of which one member was not, by reason. All but foreign_partition are in "
    "quarantine.",
    unknown="No record was left out for that reason.",
    example="increase(rebalance_monitor_records_skipped_total[1h]) > 0",
)
OFFSETS_TOPIC_LAG: Final = Signal(
    name="rebalance_monitor_offsets_topic_lag",
    unit="records",
    labels=(*OF_A_CLUSTER, "partition"),
    granularity=CLUSTER,
    help="Records of __consumer_offsets not read yet, to the high watermark.",
    unknown="That partition was not sampled lately, or there is no log to read (admin-api).",
    example="sum by (cluster) (rebalance_monitor_offsets_topic_lag)",
)
OFFSETS_TOPIC_HELD_BACK: Final = Signal(
    name="rebalance_monitor_offsets_topic_held_back",
    unit="records",
    labels=(*OF_A_CLUSTER, "partition"),
    granularity=CLUSTER,
    help="Records of __consumer_offsets that an open transaction holds back; their groups are unknown meanwhile.",
    unknown="That partition was not sampled lately, or there is no log to read (admin-api).",
    example="rebalance_monitor_offsets_topic_held_back > 0",
)
OFFSETS_TOPIC_LAST_STABLE_OFFSET: Final = Signal(
    name="rebalance_monitor_offsets_topic_last_stable_offset",
    unit="offset",
    labels=(*OF_A_CLUSTER, "partition"),
    granularity=CLUSTER,
    help="Offset to which __consumer_offsets is handed out: where the first open transaction begins, else the end.",
    unknown="That partition was not sampled lately, or there is no log to read (admin-api).",
    example="changes(rebalance_monitor_offsets_topic_last_stable_offset[5m]) == 0",
)
CLOCK_OFFSET_SECONDS: Final = Signal(
    name="rebalance_monitor_clock_offset_seconds",
    unit="seconds",
    labels=(*OF_A_CLUSTER, "broker"),
    granularity=CLUSTER,
    help="Clock of the broker minus clock of the monitor, estimated from the times of records.",
    unknown="No record of the broker was read in the last ten minutes, or there is no log to read (admin-api).",
    example="max by (cluster, broker) (abs(rebalance_monitor_clock_offset_seconds))",
)
CLOCK_OFFSET_WITHIN_SECONDS: Final = Signal(
    name="rebalance_monitor_clock_offset_within_seconds",
    unit="seconds",
    labels=(*OF_A_CLUSTER, "broker"),
    granularity=CLUSTER,
    help="Largest error of that estimate.",
    unknown="The estimate itself is not known.",
    example="rebalance_monitor_clock_offset_within_seconds > 5",
)
LAST_BATCH_SECONDS: Final = Signal(
    name="rebalance_monitor_last_batch_seconds",
    unit="seconds",
    labels=OF_A_CLUSTER,
    granularity=CLUSTER,
    help="Duration of the last micro-batch, from its start in the driver to its last table.",
    unknown="There was no batch since the start.",
    example="max_over_time(rebalance_monitor_last_batch_seconds[15m])",
)
STATE_ROWS: Final = Signal(
    name="rebalance_monitor_state_rows",
    unit="rows",
    labels=OF_A_CLUSTER,
    granularity=CLUSTER,
    help="Groups and partitions kept in state.",
    unknown=_ALWAYS,
    example="deriv(rebalance_monitor_state_rows[1d])",
)
QUERY_RESTARTS: Final = Signal(
    name="rebalance_monitor_query_restarts_total",
    kind=COUNTER,
    unit="restarts",
    labels=OF_A_CLUSTER,
    granularity=CLUSTER,
    help="Times the query was started again after a failure; of several clusters also tries to watch one that failed.",
    unknown=_ALWAYS,
    example="increase(rebalance_monitor_query_restarts_total[15m]) > 0",
)
DROPPED_SERIES: Final = Signal(
    name="rebalance_monitor_dropped_series",
    unit="series",
    labels=(*OF_A_CLUSTER, "reason"),
    label_values=MappingProxyType({"reason": ("top_k", "max_series")}),
    granularity=CLUSTER,
    help="Series left out of this scrape, by the setting that has them left out: metrics.top_k or metrics.max_series.",
    unknown=f"{_ALWAYS} What was never asked for (names, granularity) is not counted.",
    example='rebalance_monitor_dropped_series{reason="max_series"} > 0',
)
RESIDENT_MEMORY_BYTES: Final = Signal(
    name="rebalance_monitor_resident_memory_bytes",
    unit="bytes",
    labels=OF_A_CLUSTER,
    granularity=CLUSTER,
    help="Memory of the monitor's processes; the same for each cluster of an instance, for they share them.",
    unknown=_ALWAYS,
    example="max(max_over_time(rebalance_monitor_resident_memory_bytes[1h]))",
)
