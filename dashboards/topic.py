"""Define the dashboard of one topic: the groups that read it, their lag, and the worst partitions."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.boards import (
    TOPIC_UID,
    Row,
    create_dashboard,
    group_link,
    single_choice_variable,
    source_variable,
    top_variable,
)
from dashboards.panels import COUNT, AnyPanel, DisplayOptions, PanelSpec, Query, line_panel, stat_panel
from dashboards.promql import ONE_CLUSTER, ONE_TOPIC, count_or_zero, for_same_groups
from dashboards.runbook import firing_alerts_panel
from dashboards.tables import Column, Label, Measure, lagging_partitions_table, ranked_table
from dashboards.words import ANY, NONE, SECONDS_BEHIND, SOME, STATES, STATUSES, label_mappings
from streaming.signals import Signal, groups, lag, monitor, partitions

_LAG, _UNKNOWN = ONE_TOPIC.series(partitions.TOPIC_LAG), ONE_TOPIC.series(partitions.TOPIC_LAG_UNKNOWN_PARTITIONS)
_GROUPS = f"({_LAG} or 0 * {_UNKNOWN})"
"""All groups that have committed offsets for the topic. A group has exactly one of the two series."""
_GROUP = Label("Group", "group", links=[group_link("${cluster:percentencode}")])
_NOT_EXPORTED = "If the setting `metrics.granularity` is `group`, the lag of topics is not exported."
_LAG_UNKNOWN = f"{_NOT_EXPORTED} {partitions.TOPIC_LAG.unknown}"


def dashboard() -> build.Dashboard:
    """Return the dashboard. The groups come first."""
    names = f"{partitions.TOPIC_LAG.name}|{partitions.TOPIC_LAG_UNKNOWN_PARTITIONS.name}"
    topics = f'label_values({{__name__=~"{names}", {ONE_CLUSTER.matchers}}}, topic)'
    variables = [
        source_variable(),
        single_choice_variable("cluster", "Cluster", f"label_values({monitor.READY.name}, cluster)"),
        single_choice_variable("topic", "Topic", topics),
        top_variable(),
    ]
    about = (
        "This dashboard shows the consumer groups that read one topic, and the partitions in which these groups lag."
    )
    alerts = firing_alerts_panel(ONE_CLUSTER, [_GROUP], width=16, height=8, only=_GROUPS)
    rows = [
        Row("Which groups read this topic?", [*_stats(), _groups()]),
        Row("Lag and alerts", [_lag_over_time(), alerts]),
        Row("Partitions with the largest lag", [_partitions(), _owners()]),
        Row("Are the records divided evenly?", [_hottest_partition()]),
    ]
    return create_dashboard(TOPIC_UID, "Rebalance monitor: one topic", about, variables, rows)


def _stats() -> list[AnyPanel]:
    return [
        _number(
            "Groups", "Number of groups that have committed offsets for this topic.", _NOT_EXPORTED, f"count({_GROUPS})"
        ),
        _number(
            "Groups with lag",
            "Number of groups that have not committed all records of this topic. Groups with an unknown lag are not "
            "counted.",
            _LAG_UNKNOWN,
            f"sum({_LAG} > bool 0)",
        ),
        _number(
            "Groups with unknown lag",
            "Number of groups whose lag is unknown in at least one partition of this topic. The dashboard of the group "
            "shows the reason.",
            _NOT_EXPORTED,
            count_or_zero(_UNKNOWN, _GROUPS),
            DisplayOptions(steps=SOME, mappings=NONE),
        ),
        _number(
            "Largest lag",
            "Largest known lag of a group in this topic. The unit is records.",
            _LAG_UNKNOWN,
            f"max({_LAG})",
        ),
        _no_progress(),
    ]


def _number(title: str, how_to_read: str, if_empty: str, expression: str, display: DisplayOptions = COUNT) -> AnyPanel:
    return stat_panel(PanelSpec(title, how_to_read, if_empty, width=5, height=4), expression, display)


def _no_progress() -> AnyPanel:
    spec = PanelSpec(
        "Groups without progress",
        "Number of groups that read this topic and have the status STOP, STALL or REWIND. STOP means that there are no "
        "commits. STALL means that the committed offset does not increase. REWIND means that a committed offset "
        "decreased. The status describes the whole group, which can also read other topics.",
        _NOT_EXPORTED,
        width=4,
        height=4,
    )
    by, matcher = "cluster, group", 'status=~"STOP|STALL|REWIND"'
    stopped = for_same_groups(ONE_CLUSTER.series_by(by, lag.GROUP_STATUS, matcher), _GROUPS)
    return stat_panel(spec, count_or_zero(stopped, _GROUPS), DisplayOptions(steps=ANY, mappings=NONE))


def _groups() -> AnyPanel:
    spec = PanelSpec(
        "Groups that read this topic",
        "The group with the largest lag in this topic comes first. If the lag is unknown in some partitions, the table "
        "shows only the number of these partitions, and the group comes last. `Lag in seconds` and `Status` describe "
        "the whole group, which can also read other topics.",
        f"The monitor knows no group that reads this topic. {_NOT_EXPORTED}",
        "no known group",
        width=24,
    )
    selected, of_group = f"topk($top, {_GROUPS})", "max by (cluster, group)"
    columns: list[Column] = [
        *(_GROUP, Label("Team", "team"), Label("State", "state", label_mappings(STATES))),
        Measure("Lag in this topic", f"{of_group} ({for_same_groups(_LAG, selected)})"),
        Measure("Partitions with unknown lag", f"{of_group} ({for_same_groups(_UNKNOWN, selected)})", steps=SOME),
        Measure("Lag in seconds", _of_groups(lag.GROUP_LAG_SECONDS, selected), unit="s", steps=SECONDS_BEHIND),
        Label("Status", "status", label_mappings(STATUSES)),
        Measure("", _of_groups(lag.GROUP_STATUS, selected)),
        Measure("", for_same_groups(ONE_CLUSTER.series_by("cluster, group, state, team", groups.GROUP_INFO), selected)),
    ]
    return ranked_table(spec, columns, sort_by="Lag in this topic")


def _of_groups(signal: Signal, selected: str) -> str:
    return for_same_groups(ONE_CLUSTER.series(signal), selected)


def _lag_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Lag in records, by group",
        "Lag in this topic. At each point in time, the panel shows the groups with the largest lag. If all groups lag, "
        "look at the producers and the brokers of the topic. If only one group lags, open the dashboard of this group.",
        _LAG_UNKNOWN,
        width=8,
    )
    return line_panel(spec, [Query(f"topk($top, {_LAG})", "{{group}}")])


def _partitions() -> AnyPanel:
    spec = PanelSpec(
        "Partitions with the largest lag",
        "Partitions of this topic. The partition with the largest lag comes first. If several groups lag in the same "
        "partition, look for a hot key.",
        f"No partition has lag. {partitions.PARTITION_LAG.unknown}",
        "no known lag",
    )
    selected = f"topk($top, {ONE_TOPIC.series(partitions.PARTITION_LAG)} > 0)"
    return lagging_partitions_table(spec, ONE_TOPIC, _GROUP, selected)


def _owners() -> AnyPanel:
    spec = PanelSpec(
        "Owners of the partitions with the largest lag in seconds",
        "The table lists groups whose lag in seconds is above the group's limit `max_lag_seconds`. A group is listed "
        "only if its partition with the largest lag in seconds belongs to this topic. `Client`, `Host` and "
        "`Instance` identify the member that owns this partition.",
        lag.GROUP_WORST_PARTITION_INFO.unknown,
        "no known lag above the limit",
    )
    worst = f"topk($top, {ONE_TOPIC.series(lag.GROUP_WORST_PARTITION_INFO)})"
    columns: list[Column] = [
        *(_GROUP, Label("Partition", "partition"), Label("Client", "client_id"), Label("Host", "client_host")),
        Label("Instance", "group_instance_id"),
        Measure("", worst),
    ]
    return ranked_table(spec, columns, sort_by="Group")


def _hottest_partition() -> AnyPanel:
    spec = PanelSpec(
        "Hottest partition over time",
        "Produce rate of the hottest partition of this topic, divided by the mean produce rate of all its partitions. "
        "The legend names the partition. No assignment can divide a hot partition. Therefore, look at the keys of the "
        "records and at the producer's partitioner.",
        partitions.TOPIC_HOTTEST_PARTITION_RATIO.unknown,
        "no known hot partition",
        width=24,
    )
    ratio = ONE_TOPIC.series_by("partition", partitions.TOPIC_HOTTEST_PARTITION_RATIO)
    return line_panel(spec, [Query(ratio, "partition {{partition}}")])
