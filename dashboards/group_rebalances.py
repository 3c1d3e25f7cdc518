"""Of one group: its rebalances, why there were, what they moved, and what they cost."""

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
_QUANTILES = {"half of them within": 0.5, "9 of 10 within": 0.9, "all within": 1.0}


def rebalances() -> list[AnyPanel]:
    """Causes first: they are what somebody can do something about."""
    return [_causes(), _conditions(), _moved(), _members(), _in_progress(), _commit_gaps(), _commit_gap_quantiles()]


def _causes() -> AnyPanel:
    spec = PanelSpec(
        "Rebalances by cause",
        "In each step of time, by primary cause. Blue: members came and went. Orange: somebody changed the strategy, a "
        "subscription or a topic. Palest blue: the second round of a cooperative one. Red: no record explains it.",
        "the group did not rebalance then; or it was not watched.",
        "no rebalance seen",
        width=16,
    )
    increase = sum_by("cause", ONE_GROUP.increase(REBALANCES_BY_CAUSE, _IN_STEP))
    return bar_panel(spec, [Query(increase, "{{cause}}")], DisplayOptions(colors=CAUSES))


def _conditions() -> AnyPanel:
    spec = PanelSpec(
        "Conditions that held",
        "A row for each condition that held at some time in the time range, and when. A rolling restart is no trouble.",
        "no condition held, as far as is known.",
        "no condition held, as far as is known",
        width=8,
    )
    conditions = code_query_by_label(ONE_GROUP, GROUP_CONDITION, "condition", CONDITIONS)
    return timeline_panel(spec, [Query(conditions, "{{condition}}")], code_mappings(CONDITIONS))


def _moved() -> AnyPanel:
    spec = PanelSpec(
        "Moved partitions",
        "Partitions that went from one owner to another. Needless: an assignment as balanced left them where they "
        "were, so a sticky strategy or static members would save them.",
        "no partition changed its owner then; or the group was not watched.",
        "no move seen",
        width=8,
    )
    legends = {
        'necessary="true"': "necessary",
        'necessary="false"': "needless",
        'necessary="unknown"': "need not known",
    }
    queries = [
        Query(f"sum({ONE_GROUP.increase(MOVED_PARTITIONS, _IN_STEP, matcher)})", legend)
        for matcher, legend in legends.items()
    ]
    colors = {"necessary": NEITHER, "needless": ACT, "need not known": UNKNOWN}
    return bar_panel(spec, queries, DisplayOptions(colors=colors))


def _members() -> AnyPanel:
    spec = PanelSpec(
        "Members, and rebalances that went wrong",
        "Members at the last recorded generation. Failed: rebalances that members joined and that never completed, as "
        "far as the log proves it. Emptied: the last member left.",
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
        "Rebalance in progress since",
        "How long listings have shown the group in the middle of a rebalance, at least. No record tells of it. "
        "Minutes: somebody holds it up, often a member that works on its last records for long.",
        GROUP_REBALANCING_SECONDS.unknown,
        "none in progress seen",
        width=8,
    )
    since = f"max({ONE_GROUP.selector(GROUP_REBALANCING_SECONDS)})"
    return line_panel(spec, [Query(since, "in progress")], DisplayOptions(unit="s", steps=SECONDS_BEHIND))


def _commit_gaps() -> AnyPanel:
    spec = PanelSpec(
        "Commit gaps over time",
        "How long nobody committed, from the last commit before a rebalance to the first after: what the rebalance "
        "cost. The darker, the more rebalances; the scale is the upper bound of each bucket.",
        COMMIT_GAP_SECONDS.unknown,
        "no gap known",
        width=16,
    )
    return heatmap_panel(spec, sum_by(_LE, ONE_GROUP.increase(COMMIT_GAP_SECONDS, _IN_STEP)), "s")


def _commit_gap_quantiles() -> AnyPanel:
    spec = PanelSpec(
        "Commit gaps in the time range",
        "How long half of the rebalances, 9 of 10, and all of them kept the group from committing. Read from buckets "
        "of 1, 5, 15, 60 and 300 seconds: 300 means 300 or more.",
        COMMIT_GAP_SECONDS.unknown,
        "no gap known",
        width=8,
    )
    gaps = sum_by(_LE, ONE_GROUP.increase_in_range(COMMIT_GAP_SECONDS))
    queries = [Query(f"histogram_quantile({q}, {gaps}) > 0", legend) for legend, q in _QUANTILES.items()]
    return bar_gauge_panel(spec, queries, DisplayOptions(unit="s", steps=SECONDS_BEHIND))
