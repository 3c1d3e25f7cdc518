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
from dashboards.panels import AnyPanel, DisplayOptions, PanelSpec, Query, line_panel, stat_panel
from dashboards.promql import ONE_CLUSTER, ONE_TOPIC, for_same_groups, top_k
from dashboards.runbook import firing_alerts_panel
from dashboards.tables import Column, Label, Measure, lagging_partitions_table, ranked_table
from dashboards.words import ANY, NONE, SECONDS_BEHIND, STATES, STATUSES, label_mappings
from streaming.signals import Signal
from streaming.signals.groups import GROUP_INFO
from streaming.signals.lag import GROUP_LAG_SECONDS, GROUP_STATUS, GROUP_WORST_PARTITION_INFO
from streaming.signals.monitor import READY
from streaming.signals.partitions import PARTITION_LAG, TOPIC_HOTTEST_PARTITION_RATIO, TOPIC_LAG

_LAG = ONE_TOPIC.series(TOPIC_LAG)
_GROUP = Label("Group", "group", links=[group_link("${cluster:percentencode}")])
_NOT_EXPORTED = (
    f"If the setting `metrics.granularity` is `group`, the lag of topics is not exported. {TOPIC_LAG.unknown}"
)


def dashboard() -> build.Dashboard:
    """Return the dashboard. The groups come first."""
    topics = f"label_values({ONE_CLUSTER.selector(TOPIC_LAG)}, topic)"
    variables = [
        source_variable(),
        single_choice_variable("cluster", "Cluster", f"label_values({READY.name}, cluster)"),
        single_choice_variable("topic", "Topic", topics),
        top_variable(),
    ]
    about = (
        "This dashboard shows the consumer groups that read one topic, and the partitions in which these groups lag."
    )
    alerts = firing_alerts_panel(ONE_CLUSTER, [_GROUP], width=16, height=8, only=ONE_TOPIC.selector(TOPIC_LAG))
    rows = [
        Row("Which groups read this topic?", [*_stats(), _groups()]),
        Row("Lag and alerts", [_lag_over_time(), alerts]),
        Row("Partitions with the largest lag", [_partitions(), _owners()]),
        Row("Are the records divided evenly?", [_hottest_partition()]),
    ]
    return create_dashboard(TOPIC_UID, "Rebalance monitor: one topic", about, variables, rows)


def _stats() -> list[AnyPanel]:
    return [
        _number("Groups", "Number of groups that have committed offsets for this topic.", f"count({_LAG})"),
        _number(
            "Groups with lag",
            "Number of groups that have not committed all records of this topic.",
            f"sum({_LAG} > bool 0)",
        ),
        _number("Largest lag", "Largest lag of a group in this topic. The unit is records.", f"max({_LAG})"),
        _no_progress(),
    ]


def _number(title: str, how_to_read: str, expression: str) -> AnyPanel:
    return stat_panel(PanelSpec(title, how_to_read, _NOT_EXPORTED, width=6, height=4), expression)


def _no_progress() -> AnyPanel:
    spec = PanelSpec(
        "Groups without progress",
        "Number of groups that read this topic and have the status STOP, STALL or REWIND. STOP means that there are no "
        "commits. STALL means that the committed offset does not increase. REWIND means that a committed offset "
        "decreased. The status describes the whole group, which can also read other topics.",
        _NOT_EXPORTED,
        width=6,
        height=4,
    )
    stopped = for_same_groups(ONE_CLUSTER.series(GROUP_STATUS, 'status=~"STOP|STALL|REWIND"'), _LAG)
    return stat_panel(spec, f"count({stopped}) or 0 * count({_LAG})", DisplayOptions(steps=ANY, mappings=NONE))


def _groups() -> AnyPanel:
    spec = PanelSpec(
        "Groups that read this topic",
        "The group with the largest lag in this topic comes first. `Lag in seconds` and `Status` describe the whole "
        "group, which can also read other topics.",
        f"The monitor knows no group that reads this topic. {_NOT_EXPORTED}",
        "no known group",
        width=24,
    )
    selected = top_k(_LAG)
    columns: list[Column] = [
        *(_GROUP, Label("Team", "team"), Label("State", "state", label_mappings(STATES))),
        Measure("Lag in this topic", f"max by (cluster, group) ({selected})"),
        Measure("Lag in seconds", _of_groups(GROUP_LAG_SECONDS, selected), unit="s", steps=SECONDS_BEHIND),
        Label("Status", "status", label_mappings(STATUSES)),
        Measure("", _of_groups(GROUP_STATUS, selected)),
        Measure("", for_same_groups(ONE_CLUSTER.series_by("cluster, group, state, team", GROUP_INFO), selected)),
    ]
    return ranked_table(spec, columns, sort_by="Lag in this topic")


def _of_groups(signal: Signal, selected: str) -> str:
    return for_same_groups(ONE_CLUSTER.series(signal), selected)


def _lag_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Lag in records, by group",
        "Lag in this topic, for the groups that have the largest lag at each time. If all groups lag, look at the "
        "producers and the brokers of the topic. If only one group lags, open the dashboard of this group.",
        _NOT_EXPORTED,
        width=8,
    )
    return line_panel(spec, [Query(top_k(_LAG), "{{group}}")])


def _partitions() -> AnyPanel:
    spec = PanelSpec(
        "Partitions with the largest lag",
        "Partitions of this topic. The partition with the largest lag comes first. If several groups lag in the same "
        "partition, look for a hot key.",
        f"No partition has lag. {PARTITION_LAG.unknown}",
        "no known lag",
    )
    selected = top_k(f"{ONE_TOPIC.series(PARTITION_LAG)} > 0")
    return lagging_partitions_table(spec, ONE_TOPIC, _GROUP, selected)


def _owners() -> AnyPanel:
    spec = PanelSpec(
        "Owners of the partitions with the largest lag in seconds",
        "The table lists groups whose lag in seconds is above the group's limit `max_lag_seconds`. A group is listed "
        "only if its partition with the largest lag in seconds belongs to this topic. `Client`, `Host` and "
        "`Instance` identify the member that owns this partition.",
        GROUP_WORST_PARTITION_INFO.unknown,
        "no known lag above the limit",
    )
    worst = ONE_TOPIC.series(GROUP_WORST_PARTITION_INFO)
    columns: list[Column] = [
        *(_GROUP, Label("Partition", "partition"), Label("Client", "client_id"), Label("Host", "client_host")),
        Label("Instance", "group_instance_id"),
        Measure("", top_k(worst)),
    ]
    return ranked_table(spec, columns, sort_by="Group")


def _hottest_partition() -> AnyPanel:
    spec = PanelSpec(
        "Hottest partition over time",
        "Produce rate of the hottest partition of this topic, divided by the mean produce rate of all its partitions. "
        "The legend names the partition. No assignment can divide a hot partition. Look at the keys of the records and "
        "at the producer's partitioner.",
        TOPIC_HOTTEST_PARTITION_RATIO.unknown,
        "no known hot partition",
        width=24,
    )
    ratio = ONE_TOPIC.series_by("partition", TOPIC_HOTTEST_PARTITION_RATIO)
    return line_panel(spec, [Query(ratio, "partition {{partition}}")])
