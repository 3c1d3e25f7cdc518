"""Define the rebalance panels of one group: causes, conditions, moved partitions and commit gaps."""

from __future__ import annotations

from dashboards.panels import (
    AnyPanel,
    DisplayOptions,
    PanelSpec,
    Query,
    bar_gauge_panel,
    bar_panel,
    heatmap_panel,
    line_panel,
    timeline_panel,
)
from dashboards.promql import ONE_GROUP, sum_by
from dashboards.words import (
    ACT,
    CAUSES,
    CONDITIONS,
    NEITHER,
    SECONDS_BEHIND,
    UNKNOWN,
    code_mappings,
    code_query_by_label,
)
from streaming.signals.groups import GROUP_MEMBERS, GROUP_REBALANCING_SECONDS
from streaming.signals.rebalances import (
    COMMIT_GAP_SECONDS,
    EMPTY_TRANSITIONS,
    GROUP_CONDITION,
    MOVED_PARTITIONS,
    REBALANCES_BY_CAUSE,
    REBALANCES_FAILED,
)

_IN_STEP, _LE = "$__interval", "le"
_QUANTILES = {"50 % at most": 0.5, "90 % at most": 0.9, "100 % at most": 1.0}


def rebalances() -> list[AnyPanel]:
    """Return the panels. Causes come first, because operators can remove causes."""
    return [_causes(), _conditions(), _moved(), _members(), _in_progress(), _commit_gaps(), _commit_gap_quantiles()]


def _causes() -> AnyPanel:
    spec = PanelSpec(
        "Rebalances by cause",
        "Rebalances in each time step, by primary cause. Blue: members joined or left. Orange: the strategy, a "
        "subscription or a topic changed. Lightest blue: second round of a cooperative rebalance. Red: no record "
        "explains the rebalance.",
        "The group did not rebalance at that time, or no monitor was ready.",
        "no known rebalance",
        width=16,
    )
    increase = sum_by("cause", ONE_GROUP.increase(REBALANCES_BY_CAUSE, _IN_STEP))
    return bar_panel(spec, [Query(increase, "{{cause}}")], DisplayOptions(colors=CAUSES))


def _conditions() -> AnyPanel:
    spec = PanelSpec(
        "Conditions over time",
        "One row for each condition that was active in the time range. A rolling restart is not a problem.",
        "No condition is known to have been active.",
        "no known condition",
        width=8,
    )
    conditions = code_query_by_label(ONE_GROUP, GROUP_CONDITION, "condition", CONDITIONS)
    return timeline_panel(spec, [Query(conditions, "{{condition}}")], code_mappings(CONDITIONS))


def _moved() -> AnyPanel:
    spec = PanelSpec(
        "Moved partitions",
        "Partitions that moved from one owner to a different owner. Needless: an equally balanced assignment would "
        "not move them, so a sticky strategy or static members would avoid these moves.",
        "No partition changed its owner at that time, or no monitor was ready.",
        "no known move",
        width=8,
    )
    legends = {
        'necessary="true"': "necessary",
        'necessary="false"': "needless",
        'necessary="unknown"': "unknown",
    }
    queries = [
        Query(f"sum({ONE_GROUP.increase(MOVED_PARTITIONS, _IN_STEP, matcher)})", legend)
        for matcher, legend in legends.items()
    ]
    colors = {"necessary": NEITHER, "needless": ACT, "unknown": UNKNOWN}
    return bar_panel(spec, queries, DisplayOptions(colors=colors))


def _members() -> AnyPanel:
    spec = PanelSpec(
        "Members and failed rebalances",
        "Members: number of members in the last recorded generation. Failed: number of rebalances that never "
        "completed, as far as the log proves this. Emptied: number of times that the last member left.",
        f"Members: {GROUP_MEMBERS.unknown}",
        width=8,
    )
    queries = [
        Query(f"max({ONE_GROUP.selector(GROUP_MEMBERS)})", "members"),
        Query(f"sum({ONE_GROUP.increase(REBALANCES_FAILED, _IN_STEP)})", "failed"),
        Query(f"sum({ONE_GROUP.increase(EMPTY_TRANSITIONS, _IN_STEP)})", "emptied"),
    ]
    return line_panel(spec, queries, DisplayOptions(colors={"members": NEITHER, "failed": ACT, "emptied": UNKNOWN}))


def _in_progress() -> AnyPanel:
    spec = PanelSpec(
        "Duration of the current rebalance",
        "Minimum duration of the rebalance in progress, according to listings of groups. The log does not show a "
        "rebalance in progress. If the rebalance takes minutes, one member delays it. This member often processes its "
        "last records for a long time.",
        GROUP_REBALANCING_SECONDS.unknown,
        "no known rebalance in progress",
        width=8,
    )
    since = f"max({ONE_GROUP.selector(GROUP_REBALANCING_SECONDS)})"
    return line_panel(spec, [Query(since, "in progress")], DisplayOptions(unit="s", steps=SECONDS_BEHIND))


def _commit_gaps() -> AnyPanel:
    spec = PanelSpec(
        "Commit gaps over time",
        "Time from the last commit before a rebalance to the first commit after the rebalance. A darker field has "
        "more rebalances. The axis shows the upper bound of each bucket.",
        COMMIT_GAP_SECONDS.unknown,
        "no known gap",
        width=16,
    )
    return heatmap_panel(spec, sum_by(_LE, ONE_GROUP.increase(COMMIT_GAP_SECONDS, _IN_STEP)), "s")


def _commit_gap_quantiles() -> AnyPanel:
    spec = PanelSpec(
        "Commit gaps in the time range",
        "Three values that 50 %, 90 % and 100 % of the commit gaps do not exceed. The values come from buckets of 1, "
        "5, 15, 60 and 300 seconds. 300 means 300 or more.",
        COMMIT_GAP_SECONDS.unknown,
        "no known gap",
        width=8,
    )
    gaps = sum_by(_LE, ONE_GROUP.increase_in_range(COMMIT_GAP_SECONDS))
    queries = [Query(f"histogram_quantile({q}, {gaps}) > 0", legend) for legend, q in _QUANTILES.items()]
    return bar_gauge_panel(spec, queries, DisplayOptions(unit="s", steps=SECONDS_BEHIND))
