"""Define the dashboard of all groups. For each problem, it shows the number of groups and the worst groups."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.boards import (
    FLEET_UID,
    MONITOR_UID,
    create_dashboard,
    dashboard_url,
    group_links,
    monitor_variable,
    multiple_choice_variable,
    source_variable,
    top_variable,
)
from dashboards.panels import AnyPanel, DisplayOptions, PanelSpec, Query, bar_panel, line_panel, stat_panel
from dashboards.promql import CLUSTERS, FLEET, count_or_zero, for_same_groups, repeat_for_rows, sum_by, top_k
from dashboards.runbook import firing_alerts_panel
from dashboards.tables import Column, Label, Measure, ranked_table
from dashboards.words import (
    ANY,
    BOUNDS,
    CAUSES,
    CONDITIONS,
    FINE,
    NONE,
    SECONDS_BEHIND,
    SINCE,
    SOME,
    STATES,
    STATUSES,
    STORM,
    Steps,
    Word,
    code_mappings,
    label_mappings,
    value_mapping,
)
from streaming.signals import Signal
from streaming.signals.fairness import (
    ASSIGNMENT_TIMESTAMP_SECONDS,
    ASSIGNMENT_VERDICT,
    BUSIEST_MEMBER,
    DRIFT_PARTITIONS,
    EXCESS_PARTITIONS,
    MEMBER_PARTITIONS_MIN,
    TOPIC_SKEW,
)
from streaming.signals.groups import GROUP_INFO
from streaming.signals.lag import (
    GROUP_LAG,
    GROUP_LAG_SECONDS,
    GROUP_LAG_SECONDS_IS_BOUND,
    GROUP_RECORDS_LOST,
    GROUP_SECONDS_UNTIL_LOST,
    GROUP_STATUS,
    LAG_UNKNOWN_PARTITIONS,
)
from streaming.signals.monitor import READY
from streaming.signals.rebalances import (
    COMMIT_GAP_SECONDS,
    GROUP_CONDITION,
    GROUP_CONDITION_TIMESTAMP_SECONDS,
    MOVED_PARTITIONS,
    REBALANCES,
    REBALANCES_BY_CAUSE,
)

_NO_DEPLOYMENT, _IS_UNKNOWN, _IS_DRIFT = 'condition!="rolling_restart"', 'state="Unknown"', 'verdict="drift"'
_BOUNDS = code_mappings(BOUNDS)
_GROUP = Label("Group", "group", links=group_links())
_CLUSTER = Label("Cluster", "cluster", width=140)
_NO_PROBLEM_KNOWN = (
    "No group is known to have this problem. If the numbers above are missing, the monitor does not "
    "know whether a group has it."
)


def dashboard() -> build.Dashboard:
    """Return the dashboard. It shows counts first, then the worst groups of each problem, then values over time."""
    variables = [
        source_variable(),
        multiple_choice_variable("cluster", "Cluster", f"label_values({READY.name}, cluster)"),
        multiple_choice_variable("group", "Group", f"label_values({CLUSTERS.selector(GROUP_INFO)}, group)"),
        top_variable(),
        monitor_variable(),
    ]
    about = "The consumer groups with the worst problems. The name of a group links to its dashboard and page."
    rows = {
        "Number of groups with problems": [*_counts(), firing_alerts_panel(FLEET, [_GROUP, _CLUSTER])],
        "Active conditions and drift": [_conditions(), _drift()],
        "Unfair assignments and frequent rebalances": [_skew(), _most_rebalances()],
        "Lag": [_lag_seconds(), _lag()],
        "Changes over time": [_lag_over_time(), _causes_over_time(), _statuses_over_time(), _states_over_time()],
    }
    return create_dashboard(FLEET_UID, "Rebalance monitor: all groups", about, variables, rows)


def _counts() -> list[AnyPanel]:
    return [
        _not_ready(),
        _count("Groups", "All groups, including groups without members.", f"count({FLEET.series(GROUP_INFO)})", ()),
        _with_condition(),
        _drifting(),
        _skewed(),
        _no_progress(),
        _losing(),
        _unknown(),
    ]


def _count(title: str, how_to_read: str, expression: str, steps: Steps) -> AnyPanel:
    if_empty = "No monitor of the selected clusters is ready, so the number is unknown. It is not zero."
    return stat_panel(
        PanelSpec(title, how_to_read, if_empty, width=3, height=4),
        expression,
        DisplayOptions(steps=steps, mappings=NONE if steps else ()),
    )


def _not_ready() -> AnyPanel:
    spec = PanelSpec(
        "Clusters not ready",
        "Number of clusters for which the monitor has not read the log to its end, or cannot reach the brokers. For "
        "these clusters, the other values on this dashboard are not current. The link opens the dashboard of the "
        "monitor.",
        "Prometheus does not scrape a monitor of the selected clusters. Check the scrape.",
        "no monitor",
        width=3,
        height=4,
    )
    all_ready = value_mapping({"0": ("all ready", FINE)})
    link = build.DashboardLink("The monitor itself").url(dashboard_url(MONITOR_UID))
    not_ready = count_or_zero(f"{CLUSTERS.series(READY)} == 0", CLUSTERS.series(READY))
    return stat_panel(spec, not_ready, DisplayOptions(steps=ANY, mappings=[all_ready]), link)


def _with_condition() -> AnyPanel:
    how_to_read = (
        "Number of groups that have an active condition, for example a rebalance storm or a stuck rebalance. Rolling "
        "restarts do not count."
    )
    affected = f"count by (cluster, group) ({FLEET.selector(GROUP_CONDITION, _NO_DEPLOYMENT)})"
    return _count("With a condition", how_to_read, count_or_zero(affected, f"{CLUSTERS.series(READY)} == 1"), ANY)


def _drifting() -> AnyPanel:
    how_to_read = "Number of groups that have a partition whose owner breaks a rule of the group's strategy."
    verdicts = FLEET.series(ASSIGNMENT_VERDICT, 'verdict="drift"')
    return _count("With drift", how_to_read, count_or_zero(verdicts, FLEET.series(ASSIGNMENT_VERDICT)), ANY)


def _skewed() -> AnyPanel:
    how_to_read = (
        "Number of groups in which the busiest member has more partitions than the busiest member of the "
        "fairest valid assignment."
    )
    excess = FLEET.series(EXCESS_PARTITIONS)
    return _count("Skewed", how_to_read, count_or_zero(f"{excess} > 0", excess), SOME)


def _no_progress() -> AnyPanel:
    how_to_read = (
        "Number of groups with status STOP (no commits), STALL (commits do not advance) or REWIND (a commit went back)."
    )
    affected = FLEET.series(GROUP_STATUS, 'status=~"STOP|STALL|REWIND"')
    return _count("No progress", how_to_read, count_or_zero(affected, FLEET.series(GROUP_STATUS)), ANY)


def _losing() -> AnyPanel:
    how_to_read = (
        "Number of groups that lost unread records because of retention, or that will lose records within an "
        "hour at the present rate."
    )
    lost, soon = f"{FLEET.series(GROUP_RECORDS_LOST)} > 0", f"{FLEET.series(GROUP_SECONDS_UNTIL_LOST)} < 3600"
    return _count(
        "Losing records", how_to_read, count_or_zero(f"{lost} or {soon}", FLEET.series(GROUP_RECORDS_LOST)), ANY
    )


def _unknown() -> AnyPanel:
    how_to_read = "Number of groups with an unknown state, or with a partition whose lag is unknown."
    state, lag = FLEET.selector(GROUP_INFO, _IS_UNKNOWN), FLEET.selector(LAG_UNKNOWN_PARTITIONS)
    unknown = f"max by (cluster, group) ({state} or {lag} > 0)"
    return _count("Unknown", how_to_read, count_or_zero(unknown, FLEET.series(GROUP_INFO)), SOME)


def _conditions() -> AnyPanel:
    spec = PanelSpec(
        "Active conditions",
        "All active conditions. Groups with the most conditions come first. The group's page shows the members and the "
        "cause.",
        _NO_PROBLEM_KNOWN,
        "no known condition",
    )
    selected = top_k(f"count by (cluster, group) ({FLEET.series(GROUP_CONDITION)})")
    columns: list[Column] = [
        *(_GROUP, _CLUSTER, Label("Condition", "condition", label_mappings(CONDITIONS))),
        Measure(
            "Since", for_same_groups(f"1000 * {FLEET.series(GROUP_CONDITION_TIMESTAMP_SECONDS)}", selected), unit=SINCE
        ),
        Measure("Conditions", repeat_for_rows(selected, "cluster, group", FLEET.series(GROUP_CONDITION))),
    ]
    return ranked_table(spec, columns, sort_by="Conditions")


def _drift() -> AnyPanel:
    spec = PanelSpec(
        "Worst drift",
        "Partitions whose owner breaks a rule of the group's own strategy. The group's page and the table "
        "`assignment_drift` list these partitions and their expected owners.",
        _NO_PROBLEM_KNOWN,
        "no known drift",
    )
    of_own = f"on (cluster, group, strategy) {FLEET.selector(ASSIGNMENT_VERDICT, _IS_DRIFT)}"
    drift = Measure("Drift partitions", top_k(f"({FLEET.series(DRIFT_PARTITIONS)} and {of_own}) > 0"), steps=ANY)
    return ranked_table(spec, [_GROUP, _CLUSTER, Label("Strategy", "strategy"), drift], sort_by="Drift partitions")


def _skew() -> AnyPanel:
    spec = PanelSpec(
        "Worst skew",
        "Excess: partitions of the busiest member beyond the fairest possible maximum. A difference that every "
        "assignment has does not count. Client and host identify the busiest member. Topic skew: the part of the "
        "excess that exists because the strategy assigns each topic separately, as range does. Remedy: the strategy "
        "that would remove the topic skew.",
        _NO_PROBLEM_KNOWN,
        "no known skew",
    )
    selected = top_k(f"{FLEET.series(EXCESS_PARTITIONS)} > 0")
    columns: list[Column] = [
        *(_GROUP, _CLUSTER),
        Measure("Excess", selected, steps=SOME),
        *(Label("Client", "client_id"), Label("Host", "client_host")),
        Measure("Most partitions", for_same_groups(FLEET.series(BUSIEST_MEMBER), selected)),
        Measure("Fewest partitions", for_same_groups(FLEET.series(MEMBER_PARTITIONS_MIN), selected)),
        Measure("Since", for_same_groups(f"1000 * {FLEET.series(ASSIGNMENT_TIMESTAMP_SECONDS)}", selected), unit=SINCE),
        Measure("Topic skew", for_same_groups(FLEET.series(TOPIC_SKEW), selected)),
        Label("Remedy", "remedy"),
    ]
    return ranked_table(spec, columns, sort_by="Excess")


def _most_rebalances() -> AnyPanel:
    spec = PanelSpec(
        "Most rebalances in the time range",
        "Each rebalance interrupts the group or a part of it. Needless moves: partitions that changed their owner "
        "although an equally balanced assignment would not move them. Commit gap: time from the last commit before a "
        "rebalance to the first commit after the rebalance. The column shows the value that 90 % of the known gaps do "
        "not exceed.",
        "No group is known to have rebalanced in the time range.",
        "no known rebalance",
    )
    selected = top_k(f"{FLEET.increase_in_range(REBALANCES)} > 0")
    needless = sum_by("cluster, group", FLEET.increase_in_range(MOVED_PARTITIONS, 'necessary="false"'))
    gap = f"histogram_quantile(0.9, {FLEET.increase_in_range(COMMIT_GAP_SECONDS)}) > 0"
    columns: list[Column] = [
        *(_GROUP, _CLUSTER),
        Measure("Rebalances", selected, steps=STORM),
        Measure("Needless moves", for_same_groups(needless, selected), steps=SOME),
        Measure("Commit gap", for_same_groups(gap, selected), unit="s", steps=SECONDS_BEHIND),
    ]
    return ranked_table(spec, columns, sort_by="Rebalances")


def _lag_table(spec: PanelSpec, selected: str, by: str) -> AnyPanel:
    """Return a table with columns for lag. `selected` is the query that selects the groups."""
    columns: list[Column] = [
        *(_GROUP, _CLUSTER),
        Measure(
            "Lag in time", for_same_groups(FLEET.series(GROUP_LAG_SECONDS), selected), unit="s", steps=SECONDS_BEHIND
        ),
        Measure(
            "Precision",
            for_same_groups(f"{BOUNDS[0].code} + {FLEET.series(GROUP_LAG_SECONDS_IS_BOUND)}", selected),
            mappings=_BOUNDS,
        ),
        Measure("Lag in records", for_same_groups(FLEET.series(GROUP_LAG), selected)),
        Label("Status", "status", label_mappings(STATUSES)),
        Measure("", for_same_groups(FLEET.series(GROUP_STATUS), selected)),
    ]
    return ranked_table(spec, columns, sort_by=by)


def _lag_seconds() -> AnyPanel:
    spec = PanelSpec(
        "Largest lag in time",
        "Age of the next record that the group must read, in the partition with the largest lag in time. `at least`: "
        "the record is older than all stored samples.",
        "Every group has read all records, or the lag in time is not known yet. The monitor needs some samples before "
        "it knows this lag.",
        "no known lag",
    )
    return _lag_table(spec, top_k(f"{FLEET.series(GROUP_LAG_SECONDS)} > 0"), "Lag in time")


def _lag() -> AnyPanel:
    spec = PanelSpec(
        "Largest lag in records",
        "Records that the group has not committed. A group is not listed if the lag of one of its partitions is "
        "unknown.",
        "Every group has read all records, or no lag is known.",
        "no known lag",
    )
    return _lag_table(spec, top_k(f"{FLEET.series(GROUP_LAG)} > 0"), "Lag in records")


def _lag_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Lag in records, by cluster",
        "Sum of the lag of all groups of a cluster. If this sum rises all the time, a group does not keep up. The "
        "table above shows which group.",
        "No monitor was ready at that time, or no lag was known.",
    )
    return line_panel(spec, [Query(sum_by("cluster", FLEET.series(GROUP_LAG)), "{{cluster}}")])


def _causes_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Rebalances by cause",
        "Rebalances of all groups in each time step. Blue: members joined or left. Orange: a strategy, subscription or "
        "topic changed. Red: no record explains the rebalance, for example if a client rejoins without a reason.",
        "No group rebalanced at that time, or no monitor was ready.",
    )
    causes = sum_by("cause", FLEET.increase(REBALANCES_BY_CAUSE, "$__interval"))
    return bar_panel(spec, [Query(causes, "{{cause}}")], DisplayOptions(colors=CAUSES))


def _statuses_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Groups by status",
        "OK: the group keeps up. WARN: the group is slower than its producers. STOP: the group no longer commits. "
        "STALL: the commits do not advance. REWIND: a commit went back.",
        "No status was known. A status requires some commits of the group and some samples.",
    )
    return _groups_over_time(spec, GROUP_STATUS, "status", STATUSES)


def _states_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Groups by state",
        "The states have Kafka's names. If many groups are in PreparingRebalance for minutes, their rebalances are "
        "stuck. Unknown means that records of the group are missing, or that an open transaction blocks the group's "
        "records.",
        "No monitor was ready at that time.",
    )
    return _groups_over_time(spec, GROUP_INFO, "state", STATES)


def _groups_over_time(spec: PanelSpec, signal: Signal, label: str, words: tuple[Word, ...]) -> AnyPanel:
    query = Query(f"count by ({label}) ({FLEET.series(signal)})", f"{{{{{label}}}}}")
    return bar_panel(spec, [query], DisplayOptions(colors={word.value: word.color for word in words}))
