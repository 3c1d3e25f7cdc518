"""Define the detailed lag panels of one group, with lost records and expiring offsets."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.boards import topic_dashboard_url
from dashboards.panels import COUNT, AnyPanel, DisplayOptions, PanelSpec, Query, line_panel, stat_panel
from dashboards.promql import ONE_GROUP
from dashboards.tables import Column, Label, Measure, lagging_partitions_table, ranked_table
from dashboards.words import ANY, SECONDS_LEFT, SINCE
from streaming.signals import Signal, lag, partitions

_IN_TOPIC = 'topic=~"$topic"'


def lag_panels() -> list[AnyPanel]:
    """Return the panels of lag, lost records and expiring offsets."""
    return [
        *(_topics(), _partitions()),
        _cause(),
        *(_worst_partition(), _expiry()),
        *(_lost(), _until_lost(), _unknown(), _completeness()),
    ]


def _group_line(spec: PanelSpec, signal: Signal, legend: str, display: DisplayOptions = COUNT) -> AnyPanel:
    return line_panel(spec, [Query(ONE_GROUP.series(signal), legend)], display)


def _cause() -> AnyPanel:
    spec = PanelSpec(
        "Cause of the lag",
        "The cause of the lag, and the partition, the client or the host that causes the lag. If the cause concerns "
        "the whole group, only the cell `Cause` has a value. The group's page on the monitor shows the evidence.",
        lag.GROUP_LAG_CAUSE_INFO.unknown,
        "not known to be late",
        width=24,
        height=4,
    )
    columns: list[Column] = [
        *(Label("Cause", "cause"), Label("Topic", "topic"), Label("Partition", "partition")),
        *(Label("Client", "client_id"), Label("Host", "client_host")),
        Measure("", ONE_GROUP.series(lag.GROUP_LAG_CAUSE_INFO)),
    ]
    return ranked_table(spec, columns, sort_by="Cause")


def _worst_partition() -> AnyPanel:
    spec = PanelSpec(
        "Partition with the largest lag in seconds, and the owner of this partition",
        "The table has a row only if the lag of the group in seconds is above the group's limit `max_lag_seconds`. "
        "`Client`, `Host` and `Instance` identify the member that owns the partition. These cells are empty if the "
        "owner is unknown, or if the partition has no owner.",
        lag.GROUP_WORST_PARTITION_INFO.unknown,
        "no known lag above the limit",
        width=16,
        height=4,
    )
    columns: list[Column] = [
        *(Label("Topic", "topic"), Label("Partition", "partition"), Label("Client", "client_id")),
        *(Label("Host", "client_host"), Label("Instance", "group_instance_id")),
        Measure("", ONE_GROUP.series(lag.GROUP_WORST_PARTITION_INFO)),
    ]
    return ranked_table(spec, columns, sort_by="Topic")


def _expiry() -> AnyPanel:
    spec = PanelSpec(
        "Committed offsets expire",
        "Earliest time when the broker can delete a committed offset of the group. After the deletion, the group "
        "starts again at the position that `auto.offset.reset` selects.",
        lag.GROUP_OFFSETS_EXPIRE_TIMESTAMP_SECONDS.unknown,
        "no known expiry",
        width=8,
        height=4,
    )
    expires_ms = f"1000 * {ONE_GROUP.series(lag.GROUP_OFFSETS_EXPIRE_TIMESTAMP_SECONDS)}"
    return stat_panel(spec, expires_ms, DisplayOptions(unit=SINCE))


def _topics() -> AnyPanel:
    spec = PanelSpec(
        "Lag in records, by topic",
        "Lag of each selected topic. If the lag of only one topic rises, look at the records and the producers of "
        "this topic. To see all groups that read a topic, click the line of the topic. The link opens the dashboard "
        "of the topic.",
        "If the setting `metrics.granularity` is `group`, the lag of topics is not exported. "
        + partitions.TOPIC_LAG.unknown,
        "the lag is unknown, or the granularity is group",
    )
    url = topic_dashboard_url("${cluster:percentencode}", "${__field.labels.topic:percentencode}")
    link = build.DashboardLink("All groups that read this topic").url(url)
    return line_panel(spec, [Query(ONE_GROUP.series(partitions.TOPIC_LAG, _IN_TOPIC), "{{topic}}")], link=link)


def _partitions() -> AnyPanel:
    spec = PanelSpec(
        "Partitions with the largest lag",
        "Partitions of the selected topics. The partition with the largest lag comes first. If all these partitions "
        "belong to one member, look at this member. If only one partition has lag, look for a hot key, or for a "
        "record that the consumer cannot process.",
        f"No partition has lag. {partitions.PARTITION_LAG.unknown}",
        "no known lag",
    )
    selected = f"topk(50, {ONE_GROUP.series(partitions.PARTITION_LAG, _IN_TOPIC)} > 0)"
    return lagging_partitions_table(spec, ONE_GROUP, Label("Topic", "topic"), selected)


def _lost() -> AnyPanel:
    spec = PanelSpec(
        "Records lost to retention",
        "Number of offsets that retention deleted before the group committed them. The group did not process the "
        "records at these offsets, or it skipped these records on purpose.",
        lag.GROUP_RECORDS_LOST.unknown,
        width=6,
    )
    return _group_line(spec, lag.GROUP_RECORDS_LOST, "lost", DisplayOptions(steps=ANY))


def _until_lost() -> AnyPanel:
    spec = PanelSpec(
        "Time until records are lost",
        "Time until retention deletes records that the group has not committed, if the rates do not change. "
        "Red means that less than one hour is left.",
        lag.GROUP_SECONDS_UNTIL_LOST.unknown,
        "no known risk of loss",
        width=6,
    )
    return _group_line(spec, lag.GROUP_SECONDS_UNTIL_LOST, "until lost", DisplayOptions(unit="s", steps=SECONDS_LEFT))


def _unknown() -> AnyPanel:
    spec = PanelSpec(
        "Partitions with unknown lag or status",
        "Number of partitions whose lag or status is unknown, by reason. If the lag of any partition is unknown, the "
        "group's lag in records is unknown. `blocked` means that an open transaction blocks the commits. "
        "`commits_refused` means that the brokers refuse to return the commits, for example because the monitor has no "
        "DESCRIBE permission for the group. "
        "`topic_deleted` means that the group has offsets of a deleted topic. `maybe_only_markers` means that the "
        "remaining offsets may be only transaction markers or records of aborted transactions. To check these "
        "offsets, the monitor needs the READ permission on the topic. `read up to an open transaction` means that the "
        "lag is known, but the status is unknown.",
        lag.LAG_UNKNOWN_PARTITIONS.unknown,
        "all lag is known",
        width=6,
    )
    blocked = Query(ONE_GROUP.series(lag.GROUP_BLOCKED_PARTITIONS), "read up to an open transaction")
    return line_panel(spec, [Query(ONE_GROUP.series(lag.LAG_UNKNOWN_PARTITIONS), "{{reason}}"), blocked])


def _completeness() -> AnyPanel:
    spec = PanelSpec(
        "Completeness of the status",
        "Share of the group's partitions that have a status based on ten commits. If this share is below 100 %, the "
        "status may soon change.",
        lag.GROUP_STATUS_COMPLETENESS.unknown,
        width=6,
    )
    return _group_line(spec, lag.GROUP_STATUS_COMPLETENESS, "complete", DisplayOptions(unit="percentunit", maximum=1))
