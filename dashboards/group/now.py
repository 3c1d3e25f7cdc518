"""Define the first screen of the dashboard of one group, and the tables that describe the group.

The first screen is 24 grid units high. The first screen uses only metrics that the monitor exports for every group.
Causes of rebalances are the only exception. If causes are not exported, the screen shows only the number of rebalances.
"""

from __future__ import annotations

from functools import partial

from dashboards.panels import COUNT, AnyPanel, DisplayOptions, PanelSpec, Query, bar_panel, line_panel, stat_panel
from dashboards.promql import ONE_GROUP
from dashboards.runbook import firing_alerts_panel
from dashboards.tables import Column, Label, Measure, ranked_table
from dashboards.words import (
    ACT,
    ANY,
    CATCH_UP,
    CAUSES,
    CONDITIONS,
    LAG_LIMITS,
    NEITHER,
    NONE,
    SINCE,
    SOME,
    STATES,
    STATUSES,
    VERDICTS,
    WATCH,
    catch_up_query,
    code_mappings,
    code_query,
    label_mappings,
)
from streaming.signals import Signal, fairness, groups, lag, rebalances

_LAG_LIMIT_COLORS = {"max_lag_seconds": WATCH, "critical_lag_seconds": ACT}
_third_spec = partial(PanelSpec, width=8, height=6)
_WORDS = {"state": STATES, "status": STATUSES, "verdict": VERDICTS}


def keeping_up() -> list[AnyPanel]:
    """Return the panels that show whether the group keeps up with the producers."""
    return [*_lag_stats(), _lag_in_time(), _lag_in_records(), _rates()]


def fairness_now() -> list[AnyPanel]:
    """Return the panels that show whether the work is shared fairly."""
    verdict = (
        "The panel shows whether the assignment follows the group's strategy. `differs from java` means that the "
        "leader uses a client library that computes assignments differently from Java's library. `withheld` means that "
        "a cooperative rebalance assigns some partitions only in its next round."
    )
    excess = (
        "Largest partition count of a member now, minus the largest partition count in the fairest valid assignment."
    )
    unowned = PanelSpec(
        "Unowned partitions",
        "Number of subscribed partitions without an owner.",
        fairness.UNOWNED_PARTITIONS.unknown,
        "none known",
        width=4,
        height=4,
    )
    return [
        _word("Assignment", verdict, fairness.ASSIGNMENT_VERDICT, "verdict", width=4),
        _number("Excess partitions", excess, fairness.EXCESS_PARTITIONS, DisplayOptions(steps=SOME), width=4),
        stat_panel(unowned, ONE_GROUP.series(fairness.UNOWNED_PARTITIONS), DisplayOptions(steps=ANY)),
        _busiest(),
    ]


def latest_events() -> list[AnyPanel]:
    """Return the panels that show the last events of the group."""
    return [_rebalances(), _conditions(), firing_alerts_panel(ONE_GROUP, width=8, height=6)]


def about_the_group() -> list[AnyPanel]:
    """Return the tables that describe the group and its limits."""
    return [_description(), _limits()]


def rebalance_increase() -> str:
    """Return a query for the rebalances in each time step, by cause.

    If the causes of the group are not exported, the cause is `not exported`.
    """
    causes = f"sum by (cause) ({ONE_GROUP.increase(rebalances.REBALANCES_BY_CAUSE, '$__interval')})"
    total = f"sum({ONE_GROUP.increase(rebalances.REBALANCES, '$__interval')})"
    return f'{causes} or on () label_replace({total}, "cause", "not exported", "", "")'


def _lag_stats() -> list[AnyPanel]:
    state = "State of the group. The panel uses Kafka's names of states."
    members = "Number of members in the last generation that the monitor knows."
    seconds = "Age of the oldest record that the group has not committed."
    last_commit = lag.GROUP_LAST_COMMIT_TIMESTAMP_SECONDS
    last_commit_spec = _stat_spec("Last commit", "Time of the last commit in the whole group.", last_commit)
    return [
        _word("State", state, groups.GROUP_INFO, "state"),
        _word("Status", "Worst status of all partitions of the group.", lag.GROUP_STATUS, "status"),
        _number("Members", members, groups.GROUP_MEMBERS),
        _number("Record lag", "Number of records that the group has not committed.", lag.GROUP_LAG),
        _number("Time lag", seconds, lag.GROUP_LAG_SECONDS, DisplayOptions(unit="s", mappings=NONE)),
        _lag_limit(),
        _catch_up(),
        stat_panel(last_commit_spec, f"1000 * {ONE_GROUP.series(last_commit)}", DisplayOptions(unit=SINCE)),
    ]


def _stat_spec(title: str, how_to_read: str, signal: Signal, width: int = 3) -> PanelSpec:
    return PanelSpec(title, how_to_read, signal.unknown, width=width, height=4)


def _word(title: str, how_to_read: str, signal: Signal, label: str, width: int = 3) -> AnyPanel:
    words = _WORDS[label]
    query, display = code_query(ONE_GROUP, signal, label, words), DisplayOptions(mappings=code_mappings(words))
    return stat_panel(_stat_spec(title, how_to_read, signal, width), query, display)


def _number(title: str, how_to_read: str, signal: Signal, display: DisplayOptions = COUNT, width: int = 3) -> AnyPanel:
    return stat_panel(_stat_spec(title, how_to_read, signal, width), ONE_GROUP.series(signal), display)


def _lag_limit() -> AnyPanel:
    spec = PanelSpec(
        "Lag limit",
        "Comparison of the lag in seconds with two limits of this group. The limit for warnings is "
        "`max_lag_seconds`. The limit for critical alerts is `critical_lag_seconds`.",
        lag.GROUP_LAG_SECONDS.unknown,
        width=3,
        height=4,
    )
    seconds = ONE_GROUP.series(lag.GROUP_LAG_SECONDS)
    above = (f"({seconds} > bool {ONE_GROUP.limit(name)})" for name in _LAG_LIMIT_COLORS)
    query = f"{LAG_LIMITS[0].code} + {' + '.join(above)}"
    return stat_panel(spec, query, DisplayOptions(mappings=code_mappings(LAG_LIMITS)))


def _catch_up() -> AnyPanel:
    spec = PanelSpec(
        "Catches up in",
        "Time until the group has no lag, if the group and its producers continue at the current rates. The text "
        "`not at this rate` means that the produce rate is at least 98 % of the consume rate.",
        "The lag or a rate is unknown. The monitor computes a rate from the commits of at least one minute.",
        width=3,
        height=4,
    )
    return stat_panel(spec, catch_up_query(ONE_GROUP), DisplayOptions(unit="s", mappings=CATCH_UP))


def _lag_in_time() -> AnyPanel:
    spec = _third_spec(
        "Lag in seconds",
        "Age of the oldest record that the group has not committed. A dashed line shows a limit of the group. The "
        "panel shows this line only while the lag is above one tenth of the limit.",
        lag.GROUP_LAG_SECONDS.unknown,
    )
    seconds = ONE_GROUP.series(lag.GROUP_LAG_SECONDS)
    limits = ONE_GROUP.series(groups.GROUP_LIMIT, f'limit=~"{"|".join(_LAG_LIMIT_COLORS)}"')
    near = f"{limits} < on (cluster, group) group_left () 10 * {seconds}"
    display = DisplayOptions(unit="s", colors=_LAG_LIMIT_COLORS, limits=tuple(_LAG_LIMIT_COLORS))
    return line_panel(spec, [Query(seconds, "lag"), Query(near, "{{limit}}")], display)


def _lag_in_records() -> AnyPanel:
    spec = _third_spec(
        "Lag in records",
        "Number of records that the group has not committed. If the lag rises all the time, the group does not keep "
        "up. If the lag rises in steps, look for rebalances at the times of the steps.",
        lag.GROUP_LAG.unknown,
    )
    return line_panel(spec, [Query(ONE_GROUP.series(lag.GROUP_LAG), "records")])


def _rates() -> AnyPanel:
    spec = _third_spec(
        "Consumed and produced records",
        "`consumed` is the number of records per second that the group commits. `produced` is the number of records "
        "per second that producers add to the same partitions. Both values are means of the last five minutes. If "
        "`produced` is higher than `consumed`, the lag has grown in this time.",
        lag.GROUP_CONSUMED_RECORDS_PER_SECOND.unknown,
    )
    queries = [
        Query(ONE_GROUP.series(lag.GROUP_CONSUMED_RECORDS_PER_SECOND), "consumed"),
        Query(ONE_GROUP.series(lag.GROUP_PRODUCED_RECORDS_PER_SECOND), "produced"),
    ]
    display = DisplayOptions(unit="cps", colors={"consumed": NEITHER, "produced": "orange"})
    return line_panel(spec, queries, display)


def _busiest() -> AnyPanel:
    spec = PanelSpec(
        "Busiest member",
        "The table shows the busiest member, if this member has more partitions than necessary. `Since` is the start "
        "time of the assignment.",
        fairness.BUSIEST_MEMBER.unknown,
        "no known member with too many partitions",
        height=4,
    )
    start_ms, busiest = (
        f"1000 * {ONE_GROUP.series(fairness.ASSIGNMENT_TIMESTAMP_SECONDS)}",
        ONE_GROUP.selector(fairness.BUSIEST_MEMBER),
    )
    since = f"{start_ms} and on (cluster, group) {busiest}"
    columns: list[Column] = [
        *(Label("Client", "client_id"), Label("Host", "client_host"), Label("Instance", "group_instance_id")),
        Measure("Partitions", ONE_GROUP.series(fairness.BUSIEST_MEMBER), steps=SOME),
        Measure("Since", since, unit=SINCE),
    ]
    return ranked_table(spec, columns, sort_by="Partitions")


def _rebalances() -> AnyPanel:
    spec = _third_spec(
        "Rebalances",
        "Number of rebalances in each time step, by primary cause. Blue means that members joined or left. Orange "
        "means that the strategy, a subscription or a topic changed. The lightest blue means the second round of a "
        "cooperative rebalance. Red means that no record explains the rebalance. `not exported` means that the "
        "number is known, but the monitor does not export the causes for this group. The group's page shows the "
        "causes.",
        "Either the group did not rebalance at that time, or no monitor was ready.",
        "no known rebalance",
    )
    colors = {**CAUSES, "not exported": NEITHER}
    return bar_panel(spec, [Query(rebalance_increase(), "{{cause}}")], DisplayOptions(colors=colors))


def _conditions() -> AnyPanel:
    spec = _third_spec(
        "Active conditions",
        "The table shows the conditions that are active now, and the start time of each condition. A rebalance storm "
        "is an example of a condition. A rolling restart is not a problem. The group's page shows the affected "
        "members and the cause.",
        "The monitor knows no active condition. If the panel `State` is also empty, the monitor is not ready.",
        "no known condition",
    )
    since = f"1000 * {ONE_GROUP.series(rebalances.GROUP_CONDITION_TIMESTAMP_SECONDS)}"
    columns: list[Column] = [
        Label("Condition", "condition", label_mappings(CONDITIONS)),
        Measure("Since", since, unit=SINCE),
    ]
    return ranked_table(spec, columns, sort_by="Since")


def _description() -> AnyPanel:
    spec = PanelSpec(
        "The group",
        "The table shows the type, the protocol and the coordinator of the group, with Kafka's names. `Team`, "
        "`Highest severity` and `Alerts ignored` come from the entries `[[groups]]` in the settings of the monitor.",
        groups.GROUP_INFO.unknown,
        width=16,
        height=5,
    )
    columns: list[Column] = [
        *(Label("Type", "group_type"), Label("Protocol type", "protocol_type"), Label("Strategy", "protocol")),
        *(Label("Strategy is from", "protocol_source"), Label("State", "state", label_mappings(STATES))),
        *(Label("Coordinator", "coordinator"), Label("Team", "team")),
        *(Label("Highest severity", "max_severity"), Label("Alerts ignored", "ignore_alerts")),
        Measure("", ONE_GROUP.series(groups.GROUP_INFO)),
    ]
    return ranked_table(spec, columns, sort_by="Type")


def _limits() -> AnyPanel:
    spec = PanelSpec(
        "Limits of the group",
        "Alerts compare values of the group with these limits. The entries `[[groups]]` in the settings of the "
        "monitor set the limits.",
        groups.GROUP_LIMIT.unknown,
        width=8,
        height=5,
    )
    columns: list[Column] = [Label("Limit", "limit"), Measure("Value", ONE_GROUP.series(groups.GROUP_LIMIT), unit="s")]
    return ranked_table(spec, columns, sort_by="Value")
