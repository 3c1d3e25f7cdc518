"""Define the tables of the dashboard of all groups. Each table shows the worst groups for one problem."""

from __future__ import annotations

from dashboards.boards import group_link
from dashboards.panels import AnyPanel, PanelSpec
from dashboards.promql import FLEET, for_same_groups, repeat_for_rows
from dashboards.tables import Column, Label, Measure, ranked_table
from dashboards.words import (
    ANY,
    CATCH_UP,
    CONDITIONS,
    FINE,
    SECONDS_BEHIND,
    SECONDS_LEFT,
    SINCE,
    SOME,
    STATES,
    STATUSES,
    STORM,
    WATCH,
    Steps,
    catch_up_query,
    label_mappings,
)
from streaming.signals import fairness, groups, lag, rebalances

CLUSTER = Label("Cluster", "cluster", width=140)
TEAM = Label("Team", "team", width=120)
GROUP = Label("Group", "group", links=[group_link()])
NO_DEPLOYMENT, NO_PROGRESS, IS_DRIFT = 'condition!="rolling_restart"', 'status=~"STOP|STALL|REWIND"', 'verdict="drift"'
ABOVE_LIMIT = f"{FLEET.series(lag.GROUP_LAG_SECONDS)} > on (cluster, group) {FLEET.limit('max_lag_seconds')}"
_EXPIRY: Steps = ((86_400, WATCH), (3 * 86_400, FINE))
_NO_PROBLEM_KNOWN = (
    "The monitor knows no group with this problem. If the panels at the top of the dashboard have no numbers, no "
    "monitor is ready."
)


def lag_in_time() -> AnyPanel:
    """Return the table of the groups with the largest lag in seconds."""
    spec = PanelSpec(
        "Largest lag in seconds",
        "`Lag in seconds` is the age of the oldest record that the group has not committed. `Limit` is the group's "
        "`max_lag_seconds`. `Catches up in` is the time until the group has no lag, if the rates do not change. "
        "The text `not at this rate` means that the produce rate is at least 98 % of the consume rate. The cell is "
        "empty if a rate is unknown.",
        "Either every group has read all records, or the lag in seconds is unknown. The monitor needs some samples "
        "before it knows this lag.",
        "no known lag",
        width=24,
    )
    selected = f"topk($top, {FLEET.series(lag.GROUP_LAG_SECONDS)} > 0)"
    columns: list[Column] = [
        *(GROUP, CLUSTER, TEAM, Label("State", "state", label_mappings(STATES))),
        Measure("Lag in seconds", selected, unit="s", steps=SECONDS_BEHIND),
        Measure("Limit", for_same_groups(FLEET.limit("max_lag_seconds"), selected), unit="s"),
        Measure("Lag in records", for_same_groups(FLEET.series(lag.GROUP_LAG), selected)),
        Measure("Catches up in", for_same_groups(catch_up_query(FLEET), selected), unit="s", mappings=CATCH_UP),
        Label("Status", "status", label_mappings(STATUSES)),
        Measure("", for_same_groups(FLEET.series(lag.GROUP_STATUS), selected)),
        Measure("", for_same_groups(FLEET.series_by("cluster, group, team, state", groups.GROUP_INFO), selected)),
    ]
    return ranked_table(spec, columns, sort_by="Lag in seconds")


def conditions() -> AnyPanel:
    """Return the table of the active conditions."""
    spec = PanelSpec(
        "Active conditions",
        "The table shows the groups with the most active conditions, and all active conditions of these groups. The "
        "monitor's page of a group shows the affected members and the cause.",
        _NO_PROBLEM_KNOWN,
        "no known condition",
    )
    selected = f"topk($top, count by (cluster, group) ({FLEET.series(rebalances.GROUP_CONDITION)}))"
    columns: list[Column] = [
        *(GROUP, CLUSTER, Label("Condition", "condition", label_mappings(CONDITIONS))),
        Measure(
            "Since",
            for_same_groups(f"1000 * {FLEET.series(rebalances.GROUP_CONDITION_TIMESTAMP_SECONDS)}", selected),
            unit=SINCE,
        ),
        Measure("Conditions", repeat_for_rows(selected, "cluster, group", FLEET.series(rebalances.GROUP_CONDITION))),
    ]
    return ranked_table(spec, columns, sort_by="Conditions")


def coordinators() -> AnyPanel:
    """Return the table that shows how many groups of each coordinator have trouble."""
    spec = PanelSpec(
        "Groups with trouble, by coordinator",
        "A group has trouble if its lag is above its limit, if it makes no progress, or if it has an active condition. "
        "Rolling restarts do not count. If one broker coordinates most of the groups with trouble, look at this broker "
        "first.",
        _NO_PROBLEM_KNOWN,
        "no known trouble",
    )
    of_groups = FLEET.series_by("cluster, coordinator, group", groups.GROUP_INFO)
    trouble = " or ".join(
        f"count by (cluster, group) ({one})"
        for one in (
            ABOVE_LIMIT,
            FLEET.series(lag.GROUP_STATUS, NO_PROGRESS),
            FLEET.series(rebalances.GROUP_CONDITION, NO_DEPLOYMENT),
        )
    )
    by = "count by (cluster, coordinator)"
    with_trouble = for_same_groups(of_groups, f"({trouble})")
    selected = f"topk($top, {by} ({with_trouble}))"
    columns: list[Column] = [
        *(Label("Coordinator", "coordinator"), CLUSTER),
        Measure("With trouble", selected, steps=SOME),
        Measure("All groups", f"{by} ({of_groups}) and on (cluster, coordinator) {selected}"),
    ]
    return ranked_table(spec, columns, sort_by="With trouble")


def lag_in_records() -> AnyPanel:
    """Return the table of the groups with the largest lag in records."""
    spec = PanelSpec(
        "Largest lag in records",
        "Number of records that the group has not committed. If the lag of at least one partition of a group is "
        "unknown, the group is not listed.",
        "Either every group has read all records, or no lag is known.",
        "no known lag",
    )
    selected = f"topk($top, {FLEET.series(lag.GROUP_LAG)} > 0)"
    columns: list[Column] = [
        *(GROUP, CLUSTER),
        Measure("Lag in records", selected),
        Label("Status", "status", label_mappings(STATUSES)),
        Measure("", for_same_groups(FLEET.series(lag.GROUP_STATUS), selected)),
    ]
    return ranked_table(spec, columns, sort_by="Lag in records")


def retention() -> AnyPanel:
    """Return the table of the groups whose unread records are deleted first."""
    spec = PanelSpec(
        "Records that retention deletes before the group reads them",
        "`Time left` is the time until retention deletes records that the group has not committed. `Lost records` is "
        "the number of records that are already lost. The group with the shortest time comes first. A time of 0 "
        "means that records are already lost.",
        _NO_PROBLEM_KNOWN,
        "no known risk of loss",
    )
    selected = f"bottomk($top, {FLEET.series(lag.GROUP_SECONDS_UNTIL_LOST)})"
    columns: list[Column] = [
        *(GROUP, CLUSTER),
        Measure("Time left", selected, unit="s", steps=SECONDS_LEFT),
        Measure("Lost records", for_same_groups(FLEET.series(lag.GROUP_RECORDS_LOST), selected), steps=ANY),
    ]
    return ranked_table(spec, columns, sort_by="Time left", largest_first=False)


def expiry() -> AnyPanel:
    """Return the table of the groups whose committed offsets expire first."""
    spec = PanelSpec(
        "Groups whose committed offsets expire first",
        "Time until the broker can delete a committed offset of an inactive group. After the deletion, the group "
        "starts again at the position that `auto.offset.reset` selects.",
        f"No inactive group has committed offsets. {lag.GROUP_OFFSETS_EXPIRE_TIMESTAMP_SECONDS.unknown}",
        "no known expiry",
    )
    selected = f"bottomk($top, {FLEET.series(lag.GROUP_OFFSETS_EXPIRE_TIMESTAMP_SECONDS)})"
    last_commit = f"1000 * {FLEET.series(lag.GROUP_LAST_COMMIT_TIMESTAMP_SECONDS)}"
    columns: list[Column] = [
        *(GROUP, CLUSTER),
        Measure("Time left", f"{selected} - time()", unit="s", steps=_EXPIRY),
        Measure("Last commit", for_same_groups(last_commit, selected), unit=SINCE),
    ]
    return ranked_table(spec, columns, sort_by="Time left", largest_first=False)


def drift() -> AnyPanel:
    """Return the table of the groups with the most drift."""
    spec = PanelSpec(
        "Worst drift",
        "Number of partitions whose owner breaks a rule of the group's strategy. The group's page and the table "
        "`assignment_drift` list these partitions and the expected owners.",
        _NO_PROBLEM_KNOWN,
        "no known drift",
    )
    of_own = f"on (cluster, group, strategy) {FLEET.selector(fairness.ASSIGNMENT_VERDICT, IS_DRIFT)}"
    worst = f"topk($top, ({FLEET.series(fairness.DRIFT_PARTITIONS)} and {of_own}) > 0)"
    drift = Measure("Drift partitions", worst, steps=ANY)
    return ranked_table(spec, [GROUP, CLUSTER, Label("Strategy", "strategy"), drift], sort_by="Drift partitions")


def skew() -> AnyPanel:
    """Return the table of the groups with the most excess partitions."""
    spec = PanelSpec(
        "Worst skew",
        "`Excess` is the largest partition count of a member now, minus the largest partition count in the fairest "
        "valid assignment. `Client` and `Host` identify the busiest member. `Topic skew` is the number of surplus "
        "partitions of members that have an extra partition in several topics. `Remedy` is a strategy that would "
        "remove the topic skew.",
        _NO_PROBLEM_KNOWN,
        "no known skew",
    )
    selected = f"topk($top, {FLEET.series(fairness.EXCESS_PARTITIONS)} > 0)"
    columns: list[Column] = [
        *(GROUP, CLUSTER),
        Measure("Excess", selected, steps=SOME),
        *(Label("Client", "client_id"), Label("Host", "client_host")),
        Measure("Most partitions", for_same_groups(FLEET.series(fairness.BUSIEST_MEMBER), selected)),
        Measure("Lag in seconds", for_same_groups(FLEET.series(lag.GROUP_LAG_SECONDS), selected), unit="s"),
        Measure(
            "Since",
            for_same_groups(f"1000 * {FLEET.series(fairness.ASSIGNMENT_TIMESTAMP_SECONDS)}", selected),
            unit=SINCE,
        ),
        Measure("Topic skew", for_same_groups(FLEET.series(fairness.TOPIC_SKEW), selected)),
        Label("Remedy", "remedy"),
    ]
    return ranked_table(spec, columns, sort_by="Excess")


def most_rebalances() -> AnyPanel:
    """Return the table of the groups with the most rebalances."""
    spec = PanelSpec(
        "Most rebalances in the time range",
        "Each rebalance interrupts the group or a part of the group. `Needless moves` is the number of moves that an "
        "equally fair assignment would avoid.",
        "The monitor knows no rebalance in the time range.",
        "no known rebalance",
    )
    selected = f"topk($top, {FLEET.increase_in_range(rebalances.REBALANCES)} > 0)"
    moves = FLEET.increase_in_range(rebalances.MOVED_PARTITIONS, 'necessary="false"')
    needless = f"sum by (cluster, group) ({moves})"
    columns: list[Column] = [
        *(GROUP, CLUSTER),
        Measure("Rebalances", selected, steps=STORM),
        Measure("Needless moves", for_same_groups(needless, selected), steps=SOME),
    ]
    return ranked_table(spec, columns, sort_by="Rebalances")
