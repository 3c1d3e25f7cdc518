"""Define the dashboard of all groups: for each problem, the number of groups and the worst groups."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.boards import (
    FLEET_UID,
    MONITOR_UID,
    Row,
    create_dashboard,
    dashboard_url,
    multiple_choice_variable,
    source_variable,
    top_variable,
)
from dashboards.fleet import tables
from dashboards.panels import AnyPanel, DisplayOptions, PanelSpec, Query, bar_panel, line_panel, stat_panel
from dashboards.promql import CLUSTERS, FLEET, Scope, count_or_zero
from dashboards.runbook import firing_alerts_panel
from dashboards.words import ANY, FINE, NONE, SOME, STATES, STATUSES, Steps, Word, value_mapping
from streaming.signals import Signal, fairness, groups, lag, monitor, rebalances


def dashboard() -> build.Dashboard:
    """Return the dashboard: counts, alerts and lag first, then collapsed rows with the worst groups per problem."""
    known_groups = CLUSTERS.selector(groups.GROUP_INFO)
    variables = [
        source_variable(),
        multiple_choice_variable("cluster", "Cluster", f"label_values({monitor.READY.name}, cluster)"),
        multiple_choice_variable("team", "Team", f"label_values({known_groups}, team)"),
        multiple_choice_variable("group", "Group", f"label_values({known_groups}, group)"),
        top_variable(),
    ]
    about = (
        "This dashboard shows the consumer groups with the worst problems. To open the dashboard of a group, "
        "click the name of the group."
    )
    alerts = firing_alerts_panel(Scope(f'{FLEET.matchers}, team=~"$team"'), [tables.GROUP, tables.CLUSTER, tables.TEAM])
    rows = [
        Row("Number of groups with problems", [*_counts(), alerts]),
        Row("Lag and active conditions", [tables.lag_in_time(), tables.conditions(), tables.coordinators()]),
        Row(
            "Lag in records, and groups over time",
            [tables.lag_in_records(), _lag_over_time(), _statuses_over_time(), _states_over_time()],
            is_collapsed=True,
        ),
        Row("Records and offsets that retention deletes", [tables.retention(), tables.expiry()], is_collapsed=True),
        Row("Drift and unfair assignments", [tables.drift(), tables.skew()], is_collapsed=True),
        Row("Frequent rebalances", [tables.most_rebalances(), _rebalances_over_time()], is_collapsed=True),
    ]
    return create_dashboard(FLEET_UID, "Rebalance monitor: all groups", about, variables, rows)


def _counts() -> list[AnyPanel]:
    lost = f"{FLEET.series(lag.GROUP_RECORDS_LOST)} > 0 or {FLEET.series(lag.GROUP_SECONDS_UNTIL_LOST)} < 3600"
    with_condition = f"count by (cluster, group) ({FLEET.series(rebalances.GROUP_CONDITION, tables.NO_DEPLOYMENT)})"
    unknown_state = FLEET.series(groups.GROUP_INFO, 'state="Unknown"')
    unknown = f"count by (cluster, group) ({unknown_state} or {FLEET.series(lag.LAG_UNKNOWN_PARTITIONS)} > 0)"
    is_ready, has_status = f"{CLUSTERS.series(monitor.READY)} == 1", FLEET.series(lag.GROUP_STATUS)
    return [
        _not_ready(),
        _count(
            "Above the lag limit",
            "Number of groups whose lag in seconds is above the limit `max_lag_seconds` of the group. The entries "
            "`[[groups]]` in the settings of the monitor set this limit.",
            count_or_zero(tables.ABOVE_LIMIT, FLEET.series(lag.GROUP_LAG_SECONDS)),
            ANY,
        ),
        _count(
            "No progress",
            "Number of groups whose status is STOP, STALL or REWIND. STOP means that there are no commits. STALL means "
            "that the committed offset does not increase. REWIND means that a committed offset decreased.",
            count_or_zero(FLEET.series_by("cluster, group", lag.GROUP_STATUS, tables.NO_PROGRESS), has_status),
            ANY,
        ),
        _count(
            "Losing records",
            "Number of groups that have lost records, because retention deleted the records before the group read "
            "them. Groups that will lose records within one hour also count.",
            count_or_zero(lost, has_status),
            ANY,
        ),
        _count(
            "With a condition",
            "Number of groups that have an active condition, for example a rebalance storm or a stuck rebalance. "
            "Rolling restarts are not counted.",
            count_or_zero(with_condition, is_ready),
            ANY,
        ),
        _count(
            "With drift",
            "Number of groups that have a partition whose owner breaks a rule of the group's strategy.",
            count_or_zero(FLEET.series_by("cluster, group", fairness.ASSIGNMENT_VERDICT, tables.IS_DRIFT), is_ready),
            ANY,
        ),
        _count(
            "Skewed",
            "Number of groups in which the busiest member has more partitions than necessary.",
            count_or_zero(f"{FLEET.series(fairness.EXCESS_PARTITIONS)} > 0", is_ready),
            SOME,
        ),
        _count(
            "Unknown",
            "Number of groups with an unknown state, or with an unknown lag in at least one partition.",
            count_or_zero(unknown, FLEET.series(groups.GROUP_INFO)),
            SOME,
        ),
    ]


def _count(title: str, how_to_read: str, expression: str, steps: Steps) -> AnyPanel:
    if_empty = (
        "The number is unknown. Either no monitor of the selected clusters is ready, or the value is unknown for every "
        "group. An empty panel does not mean zero."
    )
    spec = PanelSpec(title, how_to_read, if_empty, width=3, height=4)
    return stat_panel(spec, expression, DisplayOptions(steps=steps, mappings=NONE))


def _not_ready() -> AnyPanel:
    spec = PanelSpec(
        "Clusters not ready",
        "Number of clusters that are not ready. A cluster is not ready if the monitor has not read "
        "`__consumer_offsets` to its end, or if the monitor cannot reach the brokers. For these clusters, the other "
        "values on this dashboard are not current. Click the number to open the dashboard of the monitor.",
        "Prometheus does not scrape any monitor of the selected clusters. Check the targets in Prometheus.",
        "no monitor",
        width=3,
        height=4,
    )
    all_ready = value_mapping({"0": ("all ready", FINE)})
    link = build.DashboardLink("The monitor itself").url(dashboard_url(MONITOR_UID))
    not_ready = count_or_zero(f"{CLUSTERS.series(monitor.READY)} == 0", CLUSTERS.series(monitor.READY))
    return stat_panel(spec, not_ready, DisplayOptions(steps=ANY, mappings=[all_ready]), link)


def _rebalances_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Rebalances by cluster",
        "Number of rebalances of all groups in each time step. If many groups of a cluster rebalance at the same "
        "time, look at the brokers. The dashboard of a group shows the causes of the group's rebalances.",
        "Either no group rebalanced at that time, or no monitor was ready.",
    )
    total = f"sum by (cluster) ({FLEET.increase(rebalances.REBALANCES, '$__interval')})"
    return bar_panel(spec, [Query(total, "{{cluster}}")])


def _lag_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Lag in records, by cluster",
        "Sum of the lag of all groups of a cluster. If this sum rises all the time, at least one group does not keep "
        "up. The table `Largest lag in records` shows this group.",
        "Either no monitor was ready at that time, or no lag was known.",
    )
    total = f"sum by (cluster) ({FLEET.series(lag.GROUP_LAG)})"
    return line_panel(spec, [Query(total, "{{cluster}}")])


def _statuses_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Groups by status",
        "Number of groups with each status. OK means that the group keeps up. WARN means that the group is slower "
        "than its producers. STOP means that a partition no longer gets commits. STALL means that a committed offset "
        "does not increase. REWIND means that a committed offset decreased.",
        "No status was known. The monitor needs some commits of the group and some samples before it knows the status.",
    )
    return _groups_over_time(spec, lag.GROUP_STATUS, "status", STATUSES)


def _states_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Groups by state",
        "Number of groups in each state. The names of the states are Kafka's names. If many groups stay in "
        "PreparingRebalance for minutes, the rebalances of these groups are stuck. Unknown means that records of the "
        "group are missing, or that an open transaction blocks the group's partition of __consumer_offsets.",
        "No monitor was ready at that time.",
    )
    return _groups_over_time(spec, groups.GROUP_INFO, "state", STATES)


def _groups_over_time(spec: PanelSpec, signal: Signal, label: str, words: tuple[Word, ...]) -> AnyPanel:
    query = Query(f"count by ({label}) ({FLEET.series(signal)})", f"{{{{{label}}}}}")
    return bar_panel(spec, [query], DisplayOptions(colors={word.value: word.color for word in words}))
