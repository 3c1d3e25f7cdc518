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
from dashboards.fleet.tables import (
    ABOVE_LIMIT,
    CLUSTER,
    GROUP,
    IS_DRIFT,
    NO_DEPLOYMENT,
    NO_PROGRESS,
    TEAM,
    conditions,
    coordinators,
    drift,
    expiry,
    lag_in_records,
    lag_in_time,
    most_rebalances,
    retention,
    skew,
)
from dashboards.panels import AnyPanel, DisplayOptions, PanelSpec, Query, bar_panel, line_panel, stat_panel
from dashboards.promql import (
    CLUSTERS,
    FLEET,
    Scope,
    count_or_zero,
    sum_by,
)
from dashboards.runbook import firing_alerts_panel
from dashboards.words import (
    ANY,
    FINE,
    NONE,
    SOME,
    STATES,
    STATUSES,
    Steps,
    Word,
    value_mapping,
)
from streaming.signals import Signal
from streaming.signals.fairness import (
    ASSIGNMENT_VERDICT,
    EXCESS_PARTITIONS,
)
from streaming.signals.groups import GROUP_INFO
from streaming.signals.lag import (
    GROUP_LAG,
    GROUP_LAG_SECONDS,
    GROUP_RECORDS_LOST,
    GROUP_SECONDS_UNTIL_LOST,
    GROUP_STATUS,
    LAG_UNKNOWN_PARTITIONS,
)
from streaming.signals.monitor import READY
from streaming.signals.rebalances import (
    GROUP_CONDITION,
    REBALANCES,
)

_IS_UNKNOWN = 'state="Unknown"'
_IS_READY = f"{CLUSTERS.series(READY)} == 1"


def dashboard() -> build.Dashboard:
    """Return the dashboard: counts, alerts and lag first, then collapsed rows with the worst groups per problem."""
    groups = CLUSTERS.selector(GROUP_INFO)
    variables = [
        source_variable(),
        multiple_choice_variable("cluster", "Cluster", f"label_values({READY.name}, cluster)"),
        multiple_choice_variable("team", "Team", f"label_values({groups}, team)"),
        multiple_choice_variable("group", "Group", f"label_values({groups}, group)"),
        top_variable(),
    ]
    about = (
        "This dashboard shows the consumer groups with the worst problems. To open the dashboard of a group, "
        "click the name of the group."
    )
    alerts = firing_alerts_panel(Scope(f'{FLEET.matchers}, team=~"$team"'), [GROUP, CLUSTER, TEAM])
    rows = [
        Row("Number of groups with problems", [*_counts(), alerts]),
        Row("Lag and active conditions", [lag_in_time(), conditions(), coordinators()]),
        Row("Lag in records, and groups over time", _over_time(), is_collapsed=True),
        Row("Records and offsets that retention deletes", [retention(), expiry()], is_collapsed=True),
        Row("Drift and unfair assignments", [drift(), skew()], is_collapsed=True),
        Row("Frequent rebalances", [most_rebalances(), _rebalances_over_time()], is_collapsed=True),
    ]
    return create_dashboard(FLEET_UID, "Rebalance monitor: all groups", about, variables, rows)


def _counts() -> list[AnyPanel]:
    return [
        _not_ready(),
        _above_limit(),
        _no_progress(),
        _losing(),
        _with_condition(),
        _drifting(),
        _skewed(),
        _unknown(),
    ]


def _over_time() -> list[AnyPanel]:
    return [lag_in_records(), _lag_over_time(), _statuses_over_time(), _states_over_time()]


def _count(title: str, how_to_read: str, expression: str, steps: Steps) -> AnyPanel:
    if_empty = (
        "The number is unknown. Either no monitor of the selected clusters is ready, or the value is unknown for every "
        "group. An empty panel does not mean zero."
    )
    return stat_panel(
        PanelSpec(title, how_to_read, if_empty, width=3, height=4),
        expression,
        DisplayOptions(steps=steps, mappings=NONE if steps else ()),
    )


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
    not_ready = count_or_zero(f"{CLUSTERS.series(READY)} == 0", CLUSTERS.series(READY))
    return stat_panel(spec, not_ready, DisplayOptions(steps=ANY, mappings=[all_ready]), link)


def _above_limit() -> AnyPanel:
    how_to_read = (
        "Number of groups whose lag in seconds is above the limit `max_lag_seconds` of the group. The entries "
        "`[[groups]]` in the settings of the monitor set this limit."
    )
    return _count("Above the lag limit", how_to_read, count_or_zero(ABOVE_LIMIT, FLEET.series(GROUP_LAG_SECONDS)), ANY)


def _with_condition() -> AnyPanel:
    how_to_read = (
        "Number of groups that have an active condition, for example a rebalance storm or a stuck rebalance. Rolling "
        "restarts are not counted."
    )
    affected = f"count by (cluster, group) ({FLEET.series(GROUP_CONDITION, NO_DEPLOYMENT)})"
    return _count("With a condition", how_to_read, count_or_zero(affected, _IS_READY), ANY)


def _drifting() -> AnyPanel:
    how_to_read = "Number of groups that have a partition whose owner breaks a rule of the group's strategy."
    affected = FLEET.series_by("cluster, group", ASSIGNMENT_VERDICT, IS_DRIFT)
    return _count("With drift", how_to_read, count_or_zero(affected, _IS_READY), ANY)


def _skewed() -> AnyPanel:
    how_to_read = "Number of groups in which the busiest member has more partitions than necessary."
    return _count("Skewed", how_to_read, count_or_zero(f"{FLEET.series(EXCESS_PARTITIONS)} > 0", _IS_READY), SOME)


def _no_progress() -> AnyPanel:
    how_to_read = (
        "Number of groups whose status is STOP, STALL or REWIND. STOP means that there are no commits. STALL means "
        "that the committed offset does not increase. REWIND means that a committed offset decreased."
    )
    affected = FLEET.series_by("cluster, group", GROUP_STATUS, NO_PROGRESS)
    return _count("No progress", how_to_read, count_or_zero(affected, FLEET.series(GROUP_STATUS)), ANY)


def _losing() -> AnyPanel:
    how_to_read = (
        "Number of groups that have lost records, because retention deleted the records before the group read them. "
        "Groups that will lose records within one hour also count."
    )
    lost, soon = f"{FLEET.series(GROUP_RECORDS_LOST)} > 0", f"{FLEET.series(GROUP_SECONDS_UNTIL_LOST)} < 3600"
    return _count("Losing records", how_to_read, count_or_zero(f"{lost} or {soon}", FLEET.series(GROUP_STATUS)), ANY)


def _unknown() -> AnyPanel:
    how_to_read = "Number of groups with an unknown state, or with an unknown lag in at least one partition."
    state, lag = FLEET.series(GROUP_INFO, _IS_UNKNOWN), FLEET.series(LAG_UNKNOWN_PARTITIONS)
    unknown = f"count by (cluster, group) ({state} or {lag} > 0)"
    return _count("Unknown", how_to_read, count_or_zero(unknown, FLEET.series(GROUP_INFO)), SOME)


def _rebalances_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Rebalances by cluster",
        "Number of rebalances of all groups in each time step. If many groups of a cluster rebalance at the same "
        "time, look at the brokers. The dashboard of a group shows the causes of the group's rebalances.",
        "Either no group rebalanced at that time, or no monitor was ready.",
    )
    total = sum_by("cluster", FLEET.increase(REBALANCES, "$__interval"))
    return bar_panel(spec, [Query(total, "{{cluster}}")])


def _lag_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Lag in records, by cluster",
        "Sum of the lag of all groups of a cluster. If this sum rises all the time, at least one group does not keep "
        "up. The table `Largest lag in records` shows this group.",
        "Either no monitor was ready at that time, or no lag was known.",
    )
    return line_panel(spec, [Query(sum_by("cluster", FLEET.series(GROUP_LAG)), "{{cluster}}")])


def _statuses_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Groups by status",
        "Number of groups with each status. OK means that the group keeps up. WARN means that the group is slower "
        "than its producers. STOP means that the group no longer commits. STALL means that the committed offset does "
        "not increase. REWIND means that a committed offset decreased.",
        "No status was known. The monitor needs some commits of the group and some samples before it knows the status.",
    )
    return _groups_over_time(spec, GROUP_STATUS, "status", STATUSES)


def _states_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Groups by state",
        "Number of groups in each state. The names of the states are Kafka's names. If many groups stay in "
        "PreparingRebalance for minutes, the rebalances of these groups are stuck. Unknown means that records of the "
        "group are missing, or that an open transaction blocks the group's partition of __consumer_offsets.",
        "No monitor was ready at that time.",
    )
    return _groups_over_time(spec, GROUP_INFO, "state", STATES)


def _groups_over_time(spec: PanelSpec, signal: Signal, label: str, words: tuple[Word, ...]) -> AnyPanel:
    query = Query(f"count by ({label}) ({FLEET.series(signal)})", f"{{{{{label}}}}}")
    return bar_panel(spec, [query], DisplayOptions(colors={word.value: word.color for word in words}))
