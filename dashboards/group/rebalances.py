"""Define the detailed rebalance panels of one group, for example states and moved partitions."""

from __future__ import annotations

from dashboards.panels import (
    AnyPanel,
    DisplayOptions,
    PanelSpec,
    Query,
    bar_panel,
    heatmap_panel,
    line_panel,
    timeline_panel,
)
from dashboards.promql import ONE_GROUP
from dashboards.words import (
    ACT,
    AT_LEAST,
    CONDITIONS,
    NEITHER,
    SECONDS_BEHIND,
    STATES,
    STATUSES,
    UNKNOWN,
    VERDICTS,
    code_mappings,
    code_query,
    code_query_by_label,
)
from streaming.signals import fairness, groups, lag, rebalances

_IN_STEP = "$__interval"


def rebalance_panels() -> list[AnyPanel]:
    """Return the panels: states and conditions over time, then moves, members and commit gaps."""
    return [
        *(_states(), _conditions()),
        *(_moved(), _members(), _in_progress()),
        _commit_gaps(),
    ]


def _states() -> AnyPanel:
    spec = PanelSpec(
        "State over time",
        "The rows show the state of the group, the worst status of its partitions, and the verdict on its "
        "assignment. The row `lag in seconds` appears while the monitor knows only a lower bound of the lag in "
        "seconds. To see the start time of a bar, hover over the bar.",
        "The values in a gap are unknown. Either the monitor was not ready, or Prometheus did not scrape the monitor.",
        width=16,
    )
    is_bound = f"{AT_LEAST.code} * max({ONE_GROUP.selector(lag.GROUP_LAG_SECONDS_IS_BOUND)} == 1)"
    queries = [
        Query(code_query(ONE_GROUP, groups.GROUP_INFO, "state", STATES), "state"),
        Query(code_query(ONE_GROUP, lag.GROUP_STATUS, "status", STATUSES), "status"),
        Query(code_query(ONE_GROUP, fairness.ASSIGNMENT_VERDICT, "verdict", VERDICTS), "assignment"),
        Query(is_bound, "lag in seconds"),
    ]
    return timeline_panel(spec, queries, code_mappings(STATES, STATUSES, VERDICTS, [AT_LEAST]))


def _conditions() -> AnyPanel:
    spec = PanelSpec(
        "Conditions over time",
        "One row for each condition that was active in the time range. A rolling restart is not a problem.",
        "The monitor knows no condition that was active in the time range.",
        "no known condition",
        width=8,
    )
    conditions = code_query_by_label(ONE_GROUP, rebalances.GROUP_CONDITION, "condition", CONDITIONS)
    return timeline_panel(spec, [Query(conditions, "{{condition}}")], code_mappings(CONDITIONS))


def _moved() -> AnyPanel:
    spec = PanelSpec(
        "Moved partitions",
        "Number of partitions that moved to a different owner in each time step. Moves are needless if an equally fair "
        "assignment would avoid these moves. A sticky strategy or static members avoid needless moves.",
        "Either no partition changed its owner at that time, or no monitor was ready.",
        "no known move",
        width=8,
    )
    legends = {'necessary="true"': "necessary", 'necessary="false"': "needless", 'necessary="unknown"': "unknown"}
    queries = [
        Query(f"sum({ONE_GROUP.increase(rebalances.MOVED_PARTITIONS, _IN_STEP, matcher)})", legend)
        for matcher, legend in legends.items()
    ]
    colors = {"necessary": NEITHER, "needless": ACT, "unknown": UNKNOWN}
    return bar_panel(spec, queries, DisplayOptions(colors=colors))


def _members() -> AnyPanel:
    spec = PanelSpec(
        "Members and failed rebalances",
        "`members` is the number of members in the last generation that the monitor knows. `failed` is the number of "
        "rebalances that never completed. `emptied` shows how many times the last member left the group.",
        f"Members: {groups.GROUP_MEMBERS.unknown}",
        width=8,
    )
    queries = [
        Query(f"max({ONE_GROUP.selector(groups.GROUP_MEMBERS)})", "members"),
        Query(f"sum({ONE_GROUP.increase(rebalances.REBALANCES_FAILED, _IN_STEP)})", "failed"),
        Query(f"sum({ONE_GROUP.increase(rebalances.EMPTY_TRANSITIONS, _IN_STEP)})", "emptied"),
    ]
    return line_panel(spec, queries, DisplayOptions(colors={"members": NEITHER, "failed": ACT, "emptied": UNKNOWN}))


def _in_progress() -> AnyPanel:
    spec = PanelSpec(
        "Duration of the current rebalance",
        "Time since the monitor first saw the current rebalance. The rebalance may have started earlier. If a "
        "rebalance takes minutes, a member delays the rebalance, often because the member still processes records.",
        groups.GROUP_REBALANCE_START_TIMESTAMP_SECONDS.unknown,
        "no known rebalance in progress",
        width=8,
    )
    duration = f"time() - {ONE_GROUP.series(groups.GROUP_REBALANCE_START_TIMESTAMP_SECONDS)}"
    return line_panel(spec, [Query(duration, "in progress")], DisplayOptions(unit="s", steps=SECONDS_BEHIND))


def _commit_gaps() -> AnyPanel:
    spec = PanelSpec(
        "Commit gaps over time",
        "A commit gap is the time from the last commit before a rebalance to the first commit after the rebalance. A "
        "darker field means more rebalances. The axis shows the upper bound of each bucket. The largest bucket has no "
        "upper bound.",
        rebalances.COMMIT_GAP_SECONDS.unknown,
        "no known gap",
        width=24,
    )
    gaps = f"sum by (le) ({ONE_GROUP.increase(rebalances.COMMIT_GAP_SECONDS, _IN_STEP)})"
    return heatmap_panel(spec, gaps, "s")
