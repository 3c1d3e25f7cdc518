"""All groups of all clusters: how many have a trouble of which kind, and the worst of each kind."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.alerts import firing_alerts_panel
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
    code_mappings,
    label_mappings,
    value_mapping,
)
from streaming.signals.fairness import (
    ASSIGNMENT_TIMESTAMP_SECONDS,
    ASSIGNMENT_VERDICT,
    BUSIEST_MEMBER,
    DRIFT_PARTITIONS,
    EXCESS_PARTITIONS,
    MEMBER_PARTITIONS_MIN,
    TOPIC_SKEW,
)
from streaming.signals.groups import GROUP_STATE
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
_NO_PROBLEM_KNOWN = "no group has this trouble as far as is known, or nothing is known: see the figures above."


def dashboard() -> build.Dashboard:
    """Counts first, then the worst of each trouble, then how it went."""
    variables = [
        source_variable(),
        multiple_choice_variable("cluster", "Cluster", f"label_values({READY.name}, cluster)"),
        multiple_choice_variable("group", "Group", f"label_values({CLUSTERS.selector(GROUP_STATE)}, group)"),
        top_variable(),
        monitor_variable(),
    ]
    about = "Which consumer groups to look at first, and why. A group's name leads to its own dashboard and page."
    rows = {
        "How many groups are in trouble": [*_counts(), firing_alerts_panel(FLEET, [_GROUP, _CLUSTER])],
        "Wrong: what holds now, and assignments that are not what their strategy promises": [_conditions(), _drift()],
        "Unfair and restless": [_skew(), _most_rebalances()],
        "Behind": [_lag_seconds(), _lag()],
        "How it went": [_lag_over_time(), _causes_over_time(), _statuses_over_time(), _states_over_time()],
    }
    return create_dashboard(FLEET_UID, "Rebalance monitor: all groups", about, variables, rows)


def _counts() -> list[AnyPanel]:
    return [
        _not_ready(),
        _count(
            "Groups", "Groups that there are, those without members too.", f"count({FLEET.series(GROUP_STATE)})", ()
        ),
        _with_condition(),
        _drifting(),
        _skewed(),
        _no_progress(),
        _losing(),
        _unknown(),
    ]


def _count(title: str, how_to_read: str, expression: str, steps: Steps) -> AnyPanel:
    if_empty = "no monitor of the chosen clusters is ready, so nothing is known. It is no zero."
    return stat_panel(
        PanelSpec(title, how_to_read, if_empty, width=3, height=4),
        expression,
        DisplayOptions(steps=steps, mappings=NONE if steps else ()),
    )


def _not_ready() -> AnyPanel:
    spec = PanelSpec(
        "Clusters not ready",
        "Clusters whose monitor has not caught up, or is out of touch with the brokers: of those nothing else on this "
        "page is of now. The link leads to the monitor's own dashboard.",
        "Prometheus has no monitor of the chosen clusters: nobody watches. Check the scrape.",
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
        "Groups with a storm, a flapping member, a stuck rebalance or the like; a rolling restart is not counted."
    )
    affected = f"count by (cluster, group) ({FLEET.selector(GROUP_CONDITION, _NO_DEPLOYMENT)})"
    return _count("With a condition", how_to_read, count_or_zero(affected, f"{CLUSTERS.series(READY)} == 1"), ANY)


def _drifting() -> AnyPanel:
    how_to_read = "Groups whose assignment is not what their own strategy promises."
    verdicts = FLEET.series(ASSIGNMENT_VERDICT, 'verdict="drift"')
    return _count("Drifted", how_to_read, count_or_zero(verdicts, FLEET.series(ASSIGNMENT_VERDICT)), ANY)


def _skewed() -> AnyPanel:
    how_to_read = "Groups whose busiest member has more partitions than the fairest assignment would give it."
    excess = FLEET.series(EXCESS_PARTITIONS)
    return _count("Skewed", how_to_read, count_or_zero(f"{excess} > 0", excess), SOME)


def _no_progress() -> AnyPanel:
    how_to_read = "Groups of status STOP (commit no more), STALL (commit and do not get on) or REWIND (were set back)."
    affected = FLEET.series(GROUP_STATUS, 'status=~"STOP|STALL|REWIND"')
    return _count("Standing still", how_to_read, count_or_zero(affected, FLEET.series(GROUP_STATUS)), ANY)


def _losing() -> AnyPanel:
    how_to_read = "Groups of whose unread records retention took some, or will within an hour at its present rate."
    lost, soon = f"{FLEET.series(GROUP_RECORDS_LOST)} > 0", f"{FLEET.series(GROUP_SECONDS_UNTIL_LOST)} < 3600"
    return _count(
        "Losing records", how_to_read, count_or_zero(f"{lost} or {soon}", FLEET.series(GROUP_RECORDS_LOST)), ANY
    )


def _unknown() -> AnyPanel:
    how_to_read = "Groups whose state is not known, or the lag of one of their partitions."
    unknown = f"max by (cluster, group) ({FLEET.selector(GROUP_STATE, _IS_UNKNOWN)} or {FLEET.selector(LAG_UNKNOWN_PARTITIONS)} > 0)"
    return _count("Not known", how_to_read, count_or_zero(unknown, FLEET.series(GROUP_STATE)), SOME)


def _conditions() -> AnyPanel:
    spec = PanelSpec(
        "What is the matter now",
        "Conditions that hold, groups with the most of them first. Who it is, and why, is on the group's page.",
        _NO_PROBLEM_KNOWN,
        "no condition holds, as far as is known",
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
        "Partitions whose owner breaks a rule of the group's own strategy. Which ones, and whose they should be, is "
        "on the group's page and in the table `assignment_drift`.",
        _NO_PROBLEM_KNOWN,
        "no group has drifted, as far as is known",
    )
    of_own = f"on (cluster, group, strategy) {FLEET.selector(ASSIGNMENT_VERDICT, _IS_DRIFT)}"
    selected = Measure("Partitions elsewhere", top_k(f"({FLEET.series(DRIFT_PARTITIONS)} and {of_own}) > 0"), steps=ANY)
    return ranked_table(
        spec, [_GROUP, _CLUSTER, Label("Strategy", "strategy"), selected], sort_by="Partitions elsewhere"
    )


def _skew() -> AnyPanel:
    spec = PanelSpec(
        "Worst skew",
        "Excess: partitions of the busiest member beyond the smallest maximum any valid assignment reaches; a gap "
        "that nothing can close is none. Client and host say who that is, and what it has. Topic skew: how many come "
        "from dealing each topic by itself, as range does; the remedy is the strategy that would end that.",
        _NO_PROBLEM_KNOWN,
        "no group is skewed, as far as is known",
    )
    selected = top_k(f"{FLEET.series(EXCESS_PARTITIONS)} > 0")
    columns: list[Column] = [
        *(_GROUP, _CLUSTER),
        Measure("Excess", selected, steps=SOME),
        *(Label("Client", "client_id"), Label("Host", "client_host")),
        Measure("Has", for_same_groups(FLEET.series(BUSIEST_MEMBER), selected)),
        Measure("Fewest", for_same_groups(FLEET.series(MEMBER_PARTITIONS_MIN), selected)),
        Measure("Since", for_same_groups(f"1000 * {FLEET.series(ASSIGNMENT_TIMESTAMP_SECONDS)}", selected), unit=SINCE),
        Measure("Topic skew", for_same_groups(FLEET.series(TOPIC_SKEW), selected)),
        Label("Remedy", "remedy"),
    ]
    return ranked_table(spec, columns, sort_by="Excess")


def _most_rebalances() -> AnyPanel:
    spec = PanelSpec(
        "Most rebalances in the time range",
        "Each stops the group, or part of it. Needless moves: partitions that changed owner although an assignment as "
        "balanced left them where they were. Commit gap: 9 of 10 rebalances took the group less time from the last "
        "commit before to the first after, as far as that is known.",
        "no group rebalanced in the time range, or none is known.",
        "no group rebalanced, as far as is known",
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
    """The same columns, whichever the rows are chosen by."""
    columns: list[Column] = [
        *(_GROUP, _CLUSTER),
        Measure("Behind", for_same_groups(FLEET.series(GROUP_LAG_SECONDS), selected), unit="s", steps=SECONDS_BEHIND),
        Measure(
            "is",
            for_same_groups(f"{BOUNDS[0].code} + {FLEET.series(GROUP_LAG_SECONDS_IS_BOUND)}", selected),
            mappings=_BOUNDS,
        ),
        Measure("Records", for_same_groups(FLEET.series(GROUP_LAG), selected)),
        Label("Status", "status", label_mappings(STATUSES)),
        Measure("", for_same_groups(FLEET.series(GROUP_STATUS), selected)),
    ]
    return ranked_table(spec, columns, sort_by=by)


def _lag_seconds() -> AnyPanel:
    spec = PanelSpec(
        "Furthest behind in time",
        "How long ago the next record was written that the group has to read, of its partitions the most. `at least`: "
        "the record is older than every sample kept.",
        "every group has read everything, or no lag in time is known yet: it takes some samples.",
        "no group is behind, as far as is known",
    )
    return _lag_table(spec, top_k(f"{FLEET.series(GROUP_LAG_SECONDS)} > 0"), "Behind")


def _lag() -> AnyPanel:
    spec = PanelSpec(
        "Furthest behind in records",
        "Records the group has yet to commit. A group of whose partitions one's lag is not known has no sum.",
        "every group has read everything, or no lag is known.",
        "no group is behind, as far as is known",
    )
    return _lag_table(spec, top_k(f"{FLEET.series(GROUP_LAG)} > 0"), "Records")


def _lag_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Records to be committed, by cluster",
        "All groups of a cluster together. Rising all the time: somebody does not keep up; the table above says who.",
        "no monitor was ready then, or no lag was known.",
    )
    return line_panel(spec, [Query(sum_by("cluster", FLEET.series(GROUP_LAG)), "{{cluster}}")])


def _causes_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Rebalances by cause",
        "Rebalances of all groups in each step of time. Blue: members came and went. Orange: somebody changed "
        "something. Red: nothing that was recorded explains it, as when a client rejoins on its own.",
        "no group rebalanced then, or no monitor was ready.",
    )
    causes = sum_by("cause", FLEET.increase(REBALANCES_BY_CAUSE, "$__interval"))
    return bar_panel(spec, [Query(causes, "{{cause}}")], DisplayOptions(colors=CAUSES))


def _statuses_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Groups by status",
        "OK: keeps up. WARN: slower than its producers. STOP: commits no more. STALL: commits and does not get on. "
        "REWIND: was set back.",
        "no status was known: it takes some commits of a group and some samples.",
    )
    statuses = f"count by (status) ({FLEET.series(GROUP_STATUS)})"
    return bar_panel(
        spec, [Query(statuses, "{{status}}")], DisplayOptions(colors={word.value: word.color for word in STATUSES})
    )


def _states_over_time() -> AnyPanel:
    spec = PanelSpec(
        "Groups by state",
        "In Kafka's words. Many in PreparingRebalance for long: stuck rebalances. Unknown: records are missing, or an "
        "open transaction hides the group.",
        "no monitor was ready then.",
    )
    states = f"count by (state) ({FLEET.series(GROUP_STATE)})"
    return bar_panel(
        spec, [Query(states, "{{state}}")], DisplayOptions(colors={word.value: word.color for word in STATES})
    )
