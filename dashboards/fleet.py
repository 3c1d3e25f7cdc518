"""All groups of all clusters: how many have a trouble of which kind, and the worst of each kind."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.alerts import firing
from dashboards.boards import (
    FLEET_UID,
    MONITOR_UID,
    board,
    links_of_row,
    monitor_variable,
    of_same_clusters,
    some_of,
    source_variable,
    top_variable,
)
from dashboards.panels import AnyPanel, Card, Look, Query, bars, figure, lines
from dashboards.promql import CLUSTERS, FLEET, beside, number_of, repeated, sum_by, worst
from dashboards.tables import Column, Label, Measure, ranked
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
    as_labelled,
    decoded,
    mapped,
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
_BOUNDS = decoded(BOUNDS)
_GROUP = Label("Group", "group", links=links_of_row())
_CLUSTER = Label("Cluster", "cluster", width=140)
_NOTHING_IS_WRONG = "no group has this trouble as far as is known, or nothing is known: see the figures above."


def dashboard() -> build.Dashboard:
    """Counts first, then the worst of each trouble, then how it went."""
    variables = [
        source_variable(),
        some_of("cluster", "Cluster", f"label_values({READY.name}, cluster)"),
        some_of("group", "Group", f"label_values({CLUSTERS.of(GROUP_STATE)}, group)"),
        top_variable(),
        monitor_variable(),
    ]
    about = "Which consumer groups to look at first, and why. A group's name leads to its own dashboard and page."
    rows = {
        "How many groups are in trouble": [*_counts(), firing(FLEET, [_GROUP, _CLUSTER])],
        "Wrong: what holds now, and assignments that are not what their strategy promises": [_conditions(), _drift()],
        "Unfair and restless": [_skew(), _churn()],
        "Behind": [_lag_seconds(), _lag()],
        "How it went": [_lag_over_time(), _causes_over_time(), _statuses_over_time(), _states_over_time()],
    }
    return board(FLEET_UID, "Rebalance monitor: all groups", about, variables, rows)


def _counts() -> list[AnyPanel]:
    return [
        _not_ready(),
        _count("Groups", "Groups that there are, those without members too.", f"count({FLEET.each(GROUP_STATE)})", ()),
        _with_condition(),
        _drifting(),
        _skewed(),
        _standing(),
        _losing(),
        _not_known(),
    ]


def _count(title: str, reads: str, expression: str, steps: Steps) -> AnyPanel:
    absent = "no monitor of the chosen clusters is ready, so nothing is known. It is no zero."
    return figure(
        Card(title, reads, absent, width=3, height=4), expression, Look(steps=steps, mappings=NONE if steps else ())
    )


def _not_ready() -> AnyPanel:
    card = Card(
        "Clusters not ready",
        "Clusters whose monitor has not caught up, or is out of touch with the brokers: of those nothing else on this "
        "page is of now. The link leads to the monitor's own dashboard.",
        "Prometheus has no monitor of the chosen clusters: nobody watches. Check the scrape.",
        "no monitor",
        width=3,
        height=4,
    )
    all_ready = mapped({"0": ("all ready", FINE)})
    link = build.DashboardLink("The monitor itself").url(of_same_clusters(MONITOR_UID))
    not_ready = number_of(f"{CLUSTERS.each(READY)} == 0", CLUSTERS.each(READY))
    return figure(card, not_ready, Look(steps=ANY, mappings=[all_ready]), link)


def _with_condition() -> AnyPanel:
    reads = "Groups with a storm, a flapping member, a stuck rebalance or the like; a rolling restart is not counted."
    those = f"count by (cluster, group) ({FLEET.of(GROUP_CONDITION, _NO_DEPLOYMENT)})"
    return _count("With a condition", reads, number_of(those, f"{CLUSTERS.each(READY)} == 1"), ANY)


def _drifting() -> AnyPanel:
    reads = "Groups whose assignment is not what their own strategy promises."
    verdicts = FLEET.each(ASSIGNMENT_VERDICT, 'verdict="drift"')
    return _count("Drifted", reads, number_of(verdicts, FLEET.each(ASSIGNMENT_VERDICT)), ANY)


def _skewed() -> AnyPanel:
    reads = "Groups whose busiest member has more partitions than the fairest assignment would give it."
    excess = FLEET.each(EXCESS_PARTITIONS)
    return _count("Skewed", reads, number_of(f"{excess} > 0", excess), SOME)


def _standing() -> AnyPanel:
    reads = "Groups of status STOP (commit no more), STALL (commit and do not get on) or REWIND (were set back)."
    those = FLEET.each(GROUP_STATUS, 'status=~"STOP|STALL|REWIND"')
    return _count("Standing still", reads, number_of(those, FLEET.each(GROUP_STATUS)), ANY)


def _losing() -> AnyPanel:
    reads = "Groups of whose unread records retention took some, or will within an hour at its present rate."
    lost, soon = f"{FLEET.each(GROUP_RECORDS_LOST)} > 0", f"{FLEET.each(GROUP_SECONDS_UNTIL_LOST)} < 3600"
    return _count("Losing records", reads, number_of(f"{lost} or {soon}", FLEET.each(GROUP_RECORDS_LOST)), ANY)


def _not_known() -> AnyPanel:
    reads = "Groups whose state is not known, or the lag of one of their partitions."
    unknown = (
        f"max by (cluster, group) ({FLEET.of(GROUP_STATE, _IS_UNKNOWN)} or {FLEET.of(LAG_UNKNOWN_PARTITIONS)} > 0)"
    )
    return _count("Not known", reads, number_of(unknown, FLEET.each(GROUP_STATE)), SOME)


def _conditions() -> AnyPanel:
    card = Card(
        "What is the matter now",
        "Conditions that hold, groups with the most of them first. Who it is, and why, is on the group's page.",
        _NOTHING_IS_WRONG,
        "no condition holds, as far as is known",
    )
    most = worst(f"count by (cluster, group) ({FLEET.each(GROUP_CONDITION)})")
    columns: list[Column] = [
        *(_GROUP, _CLUSTER, Label("Condition", "condition", as_labelled(CONDITIONS))),
        Measure("Since", beside(f"1000 * {FLEET.each(GROUP_CONDITION_TIMESTAMP_SECONDS)}", most), unit=SINCE),
        Measure("Conditions", repeated(most, "cluster, group", FLEET.each(GROUP_CONDITION))),
    ]
    return ranked(card, columns, by="Conditions")


def _drift() -> AnyPanel:
    card = Card(
        "Worst drift",
        "Partitions whose owner breaks a rule of the group's own strategy. Which ones, and whose they should be, is "
        "on the group's page and in the table `assignment_drift`.",
        _NOTHING_IS_WRONG,
        "no group has drifted, as far as is known",
    )
    of_own = f"on (cluster, group, strategy) {FLEET.of(ASSIGNMENT_VERDICT, _IS_DRIFT)}"
    most = Measure("Partitions elsewhere", worst(f"({FLEET.each(DRIFT_PARTITIONS)} and {of_own}) > 0"), steps=ANY)
    return ranked(card, [_GROUP, _CLUSTER, Label("Strategy", "strategy"), most], by="Partitions elsewhere")


def _skew() -> AnyPanel:
    card = Card(
        "Worst skew",
        "Excess: partitions of the busiest member beyond the smallest maximum any valid assignment reaches; a gap "
        "that nothing can close is none. Client and host say who that is, and what it has. Topic skew: how many come "
        "from dealing each topic by itself, as range does; the remedy is the strategy that would end that.",
        _NOTHING_IS_WRONG,
        "no group is skewed, as far as is known",
    )
    most = worst(f"{FLEET.each(EXCESS_PARTITIONS)} > 0")
    columns: list[Column] = [
        *(_GROUP, _CLUSTER),
        Measure("Excess", most, steps=SOME),
        *(Label("Client", "client_id"), Label("Host", "client_host")),
        Measure("Has", beside(FLEET.each(BUSIEST_MEMBER), most)),
        Measure("Fewest", beside(FLEET.each(MEMBER_PARTITIONS_MIN), most)),
        Measure("Since", beside(f"1000 * {FLEET.each(ASSIGNMENT_TIMESTAMP_SECONDS)}", most), unit=SINCE),
        Measure("Topic skew", beside(FLEET.each(TOPIC_SKEW), most)),
        Label("Remedy", "remedy"),
    ]
    return ranked(card, columns, by="Excess")


def _churn() -> AnyPanel:
    card = Card(
        "Most rebalances in the time range",
        "Each stops the group, or part of it. Needless moves: partitions that changed owner although an assignment as "
        "balanced left them where they were. Commit gap: 9 of 10 rebalances took the group less time from the last "
        "commit before to the first after, as far as that is known.",
        "no group rebalanced in the time range, or none is known.",
        "no group rebalanced, as far as is known",
    )
    most = worst(f"{FLEET.happened_in_range(REBALANCES)} > 0")
    needless = sum_by("cluster, group", FLEET.happened_in_range(MOVED_PARTITIONS, 'necessary="false"'))
    gap = f"histogram_quantile(0.9, {FLEET.happened_in_range(COMMIT_GAP_SECONDS)}) > 0"
    columns: list[Column] = [
        *(_GROUP, _CLUSTER),
        Measure("Rebalances", most, steps=STORM),
        Measure("Needless moves", beside(needless, most), steps=SOME),
        Measure("Commit gap", beside(gap, most), unit="s", steps=SECONDS_BEHIND),
    ]
    return ranked(card, columns, by="Rebalances")


def _behind(card: Card, most: str, by: str) -> AnyPanel:
    """The same columns, whichever the rows are chosen by."""
    columns: list[Column] = [
        *(_GROUP, _CLUSTER),
        Measure("Behind", beside(FLEET.each(GROUP_LAG_SECONDS), most), unit="s", steps=SECONDS_BEHIND),
        Measure("is", beside(f"{BOUNDS[0].code} + {FLEET.each(GROUP_LAG_SECONDS_IS_BOUND)}", most), mappings=_BOUNDS),
        Measure("Records", beside(FLEET.each(GROUP_LAG), most)),
        Label("Status", "status", as_labelled(STATUSES)),
        Measure("", beside(FLEET.each(GROUP_STATUS), most)),
    ]
    return ranked(card, columns, by=by)


def _lag_seconds() -> AnyPanel:
    card = Card(
        "Furthest behind in time",
        "How long ago the next record was written that the group has to read, of its partitions the most. `at least`: "
        "the record is older than every sample kept.",
        "every group has read everything, or no lag in time is known yet: it takes some samples.",
        "no group is behind, as far as is known",
    )
    return _behind(card, worst(f"{FLEET.each(GROUP_LAG_SECONDS)} > 0"), "Behind")


def _lag() -> AnyPanel:
    card = Card(
        "Furthest behind in records",
        "Records the group has yet to commit. A group of whose partitions one's lag is not known has no sum.",
        "every group has read everything, or no lag is known.",
        "no group is behind, as far as is known",
    )
    return _behind(card, worst(f"{FLEET.each(GROUP_LAG)} > 0"), "Records")


def _lag_over_time() -> AnyPanel:
    card = Card(
        "Records to be committed, by cluster",
        "All groups of a cluster together. Rising all the time: somebody does not keep up; the table above says who.",
        "no monitor was ready then, or no lag was known.",
    )
    return lines(card, [Query(sum_by("cluster", FLEET.each(GROUP_LAG)), "{{cluster}}")])


def _causes_over_time() -> AnyPanel:
    card = Card(
        "Rebalances by cause",
        "Rebalances of all groups in each step of time. Blue: members came and went. Orange: somebody changed "
        "something. Red: nothing that was recorded explains it, as when a client rejoins on its own.",
        "no group rebalanced then, or no monitor was ready.",
    )
    causes = sum_by("cause", FLEET.happened(REBALANCES_BY_CAUSE, "$__interval"))
    return bars(card, [Query(causes, "{{cause}}")], Look(colors=CAUSES))


def _statuses_over_time() -> AnyPanel:
    card = Card(
        "Groups by status",
        "OK: keeps up. WARN: slower than its producers. STOP: commits no more. STALL: commits and does not get on. "
        "REWIND: was set back.",
        "no status was known: it takes some commits of a group and some samples.",
    )
    statuses = f"count by (status) ({FLEET.each(GROUP_STATUS)})"
    return bars(card, [Query(statuses, "{{status}}")], Look(colors={word.value: word.color for word in STATUSES}))


def _states_over_time() -> AnyPanel:
    card = Card(
        "Groups by state",
        "In Kafka's words. Many in PreparingRebalance for long: stuck rebalances. Unknown: records are missing, or an "
        "open transaction hides the group.",
        "no monitor was ready then.",
    )
    states = f"count by (state) ({FLEET.each(GROUP_STATE)})"
    return bars(card, [Query(states, "{{state}}")], Look(colors={word.value: word.color for word in STATES}))
