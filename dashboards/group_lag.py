"""Define the detailed lag panels of one group: lag by topic and partition, lost records, and expiring offsets."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.boards import topic_dashboard_url
from dashboards.panels import COUNT, AnyPanel, DisplayOptions, PanelSpec, Query, line_panel, stat_panel
from dashboards.promql import ONE_GROUP
from dashboards.tables import Column, Label, Measure, ranked_table
from dashboards.words import ANY, SECONDS_BEHIND, SECONDS_LEFT, SINCE, STATUSES, label_mappings
from streaming.signals import Signal
from streaming.signals.lag import (
    GROUP_BLOCKED_PARTITIONS,
    GROUP_OFFSETS_EXPIRE_TIMESTAMP_SECONDS,
    GROUP_RECORDS_LOST,
    GROUP_SECONDS_UNTIL_LOST,
    GROUP_STATUS_COMPLETENESS,
    GROUP_WORST_PARTITION_INFO,
    LAG_UNKNOWN_PARTITIONS,
)
from streaming.signals.partitions import (
    PARTITION_LAG,
    PARTITION_LAG_SECONDS,
    PARTITION_STATUS,
    TOPIC_LAG,
)

_IN_TOPIC = 'topic=~"$topic"'


def lag() -> list[AnyPanel]:
    """Return the panels: lag of topics and partitions, then lost records, expiring offsets and unknown lag."""
    return [
        *(_topics(), _partitions()),
        *(_worst_partition(), _expiry()),
        *(_lost(), _until_lost(), _unknown(), _completeness()),
    ]


def _group_line(spec: PanelSpec, signal: Signal, legend: str, display: DisplayOptions = COUNT) -> AnyPanel:
    """Return a panel with one line for the complete group."""
    return line_panel(spec, [Query(ONE_GROUP.series(signal), legend)], display)


def _worst_partition() -> AnyPanel:
    spec = PanelSpec(
        "Partition with the largest lag in time, and its owner",
        "The table has a row only if the lag of the group is above its limit `max_lag_seconds`. Client, host and "
        "instance identify the member that owns the partition. They are empty if the owner is unknown, or if the "
        "partition has no owner.",
        GROUP_WORST_PARTITION_INFO.unknown,
        "the lag is not known to be above its limit",
        width=16,
        height=4,
    )
    columns: list[Column] = [
        *(Label("Topic", "topic"), Label("Partition", "partition"), Label("Client", "client_id")),
        *(Label("Host", "client_host"), Label("Instance", "group_instance_id")),
        Measure("", ONE_GROUP.series(GROUP_WORST_PARTITION_INFO)),
    ]
    return ranked_table(spec, columns, sort_by="Topic")


def _expiry() -> AnyPanel:
    spec = PanelSpec(
        "Committed offsets expire",
        "Earliest time when the broker can delete a committed offset of the group. After that, the group starts again "
        "at the position that `auto.offset.reset` selects.",
        GROUP_OFFSETS_EXPIRE_TIMESTAMP_SECONDS.unknown,
        "not known to expire",
        width=8,
        height=4,
    )
    expires_ms = f"1000 * {ONE_GROUP.series(GROUP_OFFSETS_EXPIRE_TIMESTAMP_SECONDS)}"
    return stat_panel(spec, expires_ms, DisplayOptions(unit=SINCE))


def _topics() -> AnyPanel:
    spec = PanelSpec(
        "Lag in records, by topic",
        "Lag of the selected topics. If only one topic rises, look at its records and its producers. A click on a line "
        "leads to the dashboard of the topic with all groups that read it.",
        f"The setting `metrics.granularity` is `group`. {TOPIC_LAG.unknown}",
        "unknown, or not shown at this granularity",
    )
    url = topic_dashboard_url("${cluster:percentencode}", "${__field.labels.topic:percentencode}")
    link = build.DashboardLink("All groups that read this topic").url(url)
    return line_panel(spec, [Query(ONE_GROUP.series(TOPIC_LAG, _IN_TOPIC), "{{topic}}")], link=link)


def _partitions() -> AnyPanel:
    spec = PanelSpec(
        "Partitions with the largest lag",
        "Partitions of the selected topics, with the largest lag first. If all these partitions belong to one member, "
        "look at this member. If only one partition has lag, look for a hot key, or for a record that the consumer "
        "cannot process.",
        f"No partition has lag. {PARTITION_LAG.unknown}",
        "no known lag",
    )
    selected = f"topk(50, {ONE_GROUP.series(PARTITION_LAG, _IN_TOPIC)} > 0)"
    columns: list[Column] = [
        *(Label("Topic", "topic"), Label("Partition", "partition")),
        Measure("Lag in records", selected),
        Measure("Lag in time", _of_same_partitions(PARTITION_LAG_SECONDS, selected), unit="s", steps=SECONDS_BEHIND),
        Label("Status", "status", label_mappings(STATUSES)),
        Measure("", _of_same_partitions(PARTITION_STATUS, selected)),
    ]
    return ranked_table(spec, columns, sort_by="Lag in records")


def _of_same_partitions(signal: Signal, selected: str) -> str:
    return f"{ONE_GROUP.series(signal)} and on (topic, partition) {selected}"


def _lost() -> AnyPanel:
    spec = PanelSpec(
        "Records lost to retention",
        "Offsets that retention deleted before the group committed them. The group never processed these records, or "
        "it skipped them on purpose.",
        GROUP_RECORDS_LOST.unknown,
        width=6,
    )
    return _group_line(spec, GROUP_RECORDS_LOST, "lost", DisplayOptions(steps=ANY))


def _until_lost() -> AnyPanel:
    spec = PanelSpec(
        "Time until records are lost",
        "Time until retention deletes records that the group has not committed, if the present rate does not change. "
        "Red: less than an hour is left.",
        GROUP_SECONDS_UNTIL_LOST.unknown,
        "no record is known to be in danger",
        width=6,
    )
    return _group_line(spec, GROUP_SECONDS_UNTIL_LOST, "until lost", DisplayOptions(unit="s", steps=SECONDS_LEFT))


def _unknown() -> AnyPanel:
    spec = PanelSpec(
        "Partitions with unknown lag or status",
        "Partitions with unknown lag or status, by reason. If the lag of a partition is unknown, sums do not include "
        "it. `blocked`: an open transaction blocks the commits. `topic_deleted`: the group has offsets of a deleted "
        "topic. `maybe_only_markers`: the remaining offsets may be only transaction markers, and only a monitor with "
        "the READ permission on the topic can check this. `read up to an open transaction`: the lag is known, but the "
        "status is unknown.",
        LAG_UNKNOWN_PARTITIONS.unknown,
        "all lag is known",
        width=6,
    )
    blocked = Query(ONE_GROUP.series(GROUP_BLOCKED_PARTITIONS), "read up to an open transaction")
    return line_panel(spec, [Query(ONE_GROUP.series(LAG_UNKNOWN_PARTITIONS), "{{reason}}"), blocked])


def _completeness() -> AnyPanel:
    spec = PanelSpec(
        "Completeness of the status",
        "Share of the group's partitions whose status is based on ten commits. If this share is below 100 %, the "
        "status may soon change.",
        GROUP_STATUS_COMPLETENESS.unknown,
        width=6,
    )
    return _group_line(spec, GROUP_STATUS_COMPLETENESS, "complete", DisplayOptions(unit="percentunit", maximum=1))
