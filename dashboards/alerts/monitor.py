"""Alerts on the monitor itself. If the monitor fails, no alert about a group can fire."""

from __future__ import annotations

from typing import Final

from dashboards.alerts.definition import CRITICAL, MONITOR, WARNING, Alert, AlertFile, Level
from dashboards.alerts.expressions import AND_READY, BEHIND_RECORDS, BEHIND_SECONDS, READY, lines
from dashboards.alerts.texts import COUNT, DURATION, IN_CLUSTER, by_label

# The alert keeps itself active until Prometheus receives metrics of the cluster again, even if the monitor was removed.
# The last line fires if Prometheus has never scraped a monitor.
_DOWN_BEFORE = 'last_over_time(ALERTS{alertname="RebalanceMonitorDown",cluster!=""}[1d])'
_DOWN = lines(
    "(",
    "  max by (cluster) (last_over_time(rebalance_monitor_ready[1d]))",
    f"  or max by (cluster) ({_DOWN_BEFORE})",
    ")",
    "unless on (cluster) rebalance_monitor_ready",
    f"or absent(last_over_time(rebalance_monitor_ready[1d])) unless on () {_DOWN_BEFORE}",
)

# While the monitor restarts, its last value is used. If there is no value for 10 minutes, RebalanceMonitorDown fires.
_NOT_READY = f"last_over_time({READY}[10m]) == 0"
_BATCH_AGE = "time() - max by (cluster) (rebalance_monitor_last_batch_timestamp_seconds)"
# The topic does not exist before the first commit of a consumer group. Then no group can have a problem.
_WAITS_FOR_TOPIC = "max by (cluster) (last_over_time(rebalance_monitor_waiting_for_offsets_topic[10m])) == 1"
# Without this part, a monitor that crashes again and again would end the alert each time that it is ready.
_CRASH_LOOP = lines(
    f"  avg_over_time({READY}[1h]) < 0.5",
    f"  and on (cluster) resets({READY}[1h]) > 1",
    f"  unless on (cluster) min_over_time({READY}[15m]) == 1",
)
_STALE_CRITICAL = lines(
    f"{_NOT_READY} unless on (cluster) {_BATCH_AGE} < 60 unless on (cluster) {_WAITS_FOR_TOPIC}",
    "or",
    f"{_BATCH_AGE} > 60 and on (cluster) {BEHIND_RECORDS} > 0",
    "or (",
    _CRASH_LOOP,
    ")",
)
_STALE_WARNING = lines(
    _NOT_READY,
    "or",
    f"{BEHIND_SECONDS} > 60 and on (cluster) {BEHIND_RECORDS} > 1000",
    "or (",
    _CRASH_LOOP,
    ")",
)

# `increase` extrapolates: three restarts give 3.0 or a little more, two restarts never give 2.5.
_RESTARTS = "max by (cluster) (increase(rebalance_monitor_query_restarts_total[30m])) >= 2.5"
_TABLES_FAIL = lines(
    "max by (cluster) (increase(rebalance_monitor_table_write_failures_total[10m])) > 0",
    "or",
    "min by (cluster, folder) (100 * rebalance_monitor_disk_free_ratio) < 10",
)
_INCOMPLETE = lines(
    'max by (cluster, reason) (rebalance_monitor_dropped_series{reason="max_series"}) > 0',
    "or",
    "max by (cluster, reason) (rebalance_monitor_group_listing_gaps) > 0",
)
# The largest possible error is subtracted, so the alert fires only for a proven difference.
_CLOCKS_DIFFER = lines(
    "max by (cluster, broker) (",
    "  abs(rebalance_monitor_clock_offset_seconds) - rebalance_monitor_clock_offset_within_seconds",
    ") > 5",
)
# After a rebuild, the counter starts again, and the monitor counts old records. So the first part requires a monitor
# that has been ready for 15 minutes. The second part fires for a reason that had no series in the last day.
_QUARANTINE = lines(
    "(",
    "  max by (cluster, reason) (increase(rebalance_monitor_records_skipped_total[15m])) > 0",
    f"  and on (cluster) min_over_time({READY}[15m]) == 1",
    "  or (",
    "    max by (cluster, reason) (rebalance_monitor_records_skipped_total)",
    "    unless on (cluster, reason) last_over_time(rebalance_monitor_records_skipped_total[1d] offset 15m)",
    "    and on (cluster) last_over_time(rebalance_monitor_ready[1d] offset 15m)",
    "  )",
    ")",
    AND_READY,
)


def _in_cluster(query: str, text: str) -> str:
    """Return a template that shows `text` only if a query about the cluster has a result. `@` is the selector."""
    selected = query.replace("@", "{cluster=%q}")
    return f'{{{{ with printf "{selected}" $labels.cluster | query }}}}{text}{{{{ end }}}}'


_UNREAD = _in_cluster(
    f"{BEHIND_RECORDS}@", " Unread records of __consumer_offsets: {{ . | first | value | humanize }}."
)
_READ_RATE = _in_cluster(
    "max(sum by (instance) (rate(rebalance_monitor_records_read_total@[5m])))",
    " The monitor reads {{ . | first | value | humanize }} records per second.",
)
_LAST_BATCH = _in_cluster(
    "max(rebalance_monitor_last_batch_timestamp_seconds@)",
    " The last batch ended at {{ . | first | value | humanizeTimestamp }}.",
)
_IS_NOT_READY = f"{READY}@ == 0"

MONITOR_ITSELF: Final = AlertFile(
    "7-monitor",
    "Alerts on the monitor itself. If the monitor fails, no alert about a group can fire.",
    (
        Alert(
            "RebalanceMonitorDown",
            MONITOR,
            harm="No alert about a group can fire, so nobody would notice problems of groups. The alert ends when "
            "Prometheus receives metrics of the cluster again.",
            levels=(Level(CRITICAL, _DOWN, "10m", "0s"),),
            summary="{{ with $labels.cluster }}{{ . }}: Prometheus receives nothing from the monitor{{ else "
            "}}Prometheus receives nothing from any rebalance monitor{{ end }}",
            description="{{ with $labels.cluster }}Prometheus has received nothing from the monitor of {{ . }} for 10 "
            "minutes.{{ else }}Prometheus receives nothing from any monitor.{{ end }} Until Prometheus receives data "
            "again, no alert about a group can fire. What to do: check whether the monitor's process runs and whether "
            "Prometheus can reach the monitor's port. If necessary, start the monitor. The monitor continues at its "
            "last position. If you no longer monitor the cluster, silence this alert.",
        ),
        Alert(
            "RebalanceMonitorStale",
            MONITOR,
            harm="The monitor shows old values, so alerts about groups may come late or not at all.",
            levels=(Level(CRITICAL, _STALE_CRITICAL, "15m", "5m"), Level(WARNING, _STALE_WARNING, "15m", "5m")),
            summary=IN_CLUSTER
            + _in_cluster(
                _IS_NOT_READY, "the monitor is not ready{{ else }}the monitor lags behind __consumer_offsets"
            ),
            description="For 15 minutes or more, "
            + _in_cluster(
                _IS_NOT_READY,
                "the monitor has not been ready, or it has lost readiness again and again. Alerts about the groups of "
                "this cluster cannot fire during this time.{{ else }}the monitor has lagged behind __consumer_offsets, "
                "so its values are old.",
            )
            + f"{_UNREAD}{_READ_RATE}{_LAST_BATCH} "
            + _in_cluster(
                "max(rebalance_monitor_waiting_for_offsets_topic@) == 1",
                "The monitor waits, because the cluster has no topic __consumer_offsets. Kafka creates this topic at "
                "the first commit of a consumer group. What to do: if the cluster has no consumer groups yet, silence "
                "this alert. If the cluster has consumer groups, it hides the topic: set source.kind to admin-api."
                "{{ else }}Likely causes: the monitor has too few cores, cannot reach the brokers, or its query fails. "
                "What to do: read the monitor's log. If KafkaCoordinatorMissing also fires, act on that alert. If the "
                "monitor still reads records, wait, or give the monitor more cores. If the monitor reads no records, "
                "restart the monitor.",
            ),
        ),
        Alert(
            "RebalanceMonitorRestarts",
            MONITOR,
            harm="The monitor fails again and again, so its values are often old.",
            levels=(Level(WARNING, _RESTARTS, "0s", "15m"),),
            summary=f"{IN_CLUSTER}the monitor fails again and again, or it cannot watch the cluster",
            description="Within half an hour, the monitor failed {{ printf "
            '"%.0f" $value }} times. After each failure, the monitor had to catch up. What to do: read the '
            "monitor's log. The log describes each error in one line.",
        ),
        Alert(
            "RebalanceMonitorTablesFailing",
            MONITOR,
            harm="Rows are missing in the tables. If the disk becomes full, the monitor is no longer ready.",
            levels=(Level(WARNING, _TABLES_FAIL, "15m"),),
            summary=f"{IN_CLUSTER}{{{{ with $labels.folder }}}}the disk with the folder {{{{ . }}}} has {{{{ printf "
            f'"%.0f" '
            "$value }} % free space{{ else }}the monitor cannot write its tables{{ end }}",
            description="{{ with $labels.folder }}The setting paths.{{ . }} names a folder. The disk of this folder "
            'has only {{ printf "%.0f" $value }} % free space. If this disk becomes full, the monitor is no longer '
            "ready. What to do: make space on the disk, use a larger disk, or shorten the retention of the tables."
            "{{ else }}Writes to Delta tables have failed for 15 minutes. The monitor retries each failed write. Until "
            "a retry succeeds, rows are missing in the tables. Likely causes: the storage is full, is slow, or refuses "
            "the credentials. What to do: read the monitor's log. The log names the table and the error.{{ end }}",
        ),
        Alert(
            "RebalanceMonitorQuarantineGrows",
            MONITOR,
            harm="The monitor cannot use some records of `__consumer_offsets`, usually because it does not support the "
            "version of a client or of Kafka.",
            levels=(Level(WARNING, _QUARANTINE, "5m", "15m"),),
            summary=f"{IN_CLUSTER}the monitor cannot use records of __consumer_offsets ({{{{ $labels.reason }}}})",
            # `increase` extrapolates: one record can give 1.07.
            description='{{ $records := printf "%.0f" $value }}Within 15 minutes, the monitor ignored {{ $records }} '
            '{{ if eq $records "1" }}record{{ else }}records{{ end }} of __consumer_offsets. The reason is '
            "{{ $labels.reason }}. Likely causes: a client library writes subscriptions or assignments in its own "
            'format. In this case, the table "quarantine" names a member in its column "field". If the reason is '
            "unknown_record_type "
            "or unknown_value_version, Kafka is newer than this monitor. If the reason is foreign_partition, a "
            "program other than Kafka wrote the records, or the partition count of the topic changed. What to do: see "
            'the table "quarantine", then update the client or the monitor. For foreign_partition, see the runbook.',
        ),
        Alert(
            "RebalanceMonitorIncomplete",
            MONITOR,
            harm="Some groups are missing in the metrics or in the listing of groups, so alerts about these groups "
            "might not fire.",
            levels=(Level(WARNING, _INCOMPLETE, "15m"),),
            summary=IN_CLUSTER
            + by_label(
                "reason",
                {
                    "max_series": f"/metrics leaves out {COUNT} series",
                    "cluster_describe_not_authorized": "groups may be missing from the listing",
                    "any other": "the listing of groups is incomplete for {{ $value }} {{ if eq $value 1.0 }}broker{{ "
                    "else }}brokers{{ end }}",
                },
            )
            + " ({{ $labels.reason }})",
            description=by_label(
                "reason",
                {
                    "max_series": f"The setting metrics.max_series removes {COUNT} series from /metrics. Alerts about "
                    f"some groups might not fire. What to do: raise metrics.max_series, choose a coarser "
                    f"metrics.granularity, or exclude groups that you do not need.",
                    "cluster_describe_not_authorized": "The monitor's user does not have the DESCRIBE permission on "
                    "the cluster. So the listing contains only groups that this user may describe. For other groups, "
                    "the monitor does not see rebalances in progress. What to do: grant the monitor's user the "
                    "DESCRIBE permission on the cluster.",
                    "any other": "Brokers whose listing of groups is missing or incomplete: {{ $value }}. The reason "
                    "is {{ $labels.reason }}. The monitor does not see rebalances in progress on these brokers. The "
                    "monitor may also show groups that no longer exist. What to do: check whether these brokers are "
                    "up. Grant the monitor's user the DESCRIBE permission on groups and on the cluster.",
                },
            ),
        ),
        Alert(
            "RebalanceMonitorClocksDiffer",
            MONITOR,
            harm="If the clock of a broker is wrong, the lag in seconds and the commit gaps can be wrong.",
            levels=(Level(WARNING, _CLOCKS_DIFFER, "15m"),),
            summary=f"{IN_CLUSTER}the clocks of broker {{{{ $labels.broker }}}} and of the monitor differ by "
            f"{DURATION} or more",
            description="The monitor corrects an error of its own clock, but Prometheus and Grafana use their own "
            "clocks. If the clocks of the brokers differ, the monitor does not correct the times of rebalances, so "
            "commit gaps can be wrong. What to do: synchronize the clocks of the brokers and of the monitor (NTP).",
        ),
    ),
)
