"""Of one group: its rebalances, why there were, what they moved, and what they cost."""

from __future__ import annotations

from dashboards.panels import AnyPanel, Card, Look, Query, bars, bars_of_now, buckets_over_time, lines, words_over_time
from dashboards.promql import ONE_GROUP, sum_by
from dashboards.words import ACT, CAUSES, CONDITIONS, NEITHER, SECONDS_BEHIND, UNKNOWN, coded_each, decoded
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
    card = Card(
        "Rebalances by cause",
        "In each step of time, by primary cause. Blue: members came and went. Orange: somebody changed the strategy, a "
        "subscription or a topic. Palest blue: the second round of a cooperative one. Red: no record explains it.",
        "the group did not rebalance then; or it was not watched.",
        "no rebalance seen",
        width=16,
    )
    happened = sum_by("cause", ONE_GROUP.happened(REBALANCES_BY_CAUSE, _IN_STEP))
    return bars(card, [Query(happened, "{{cause}}")], Look(colors=CAUSES))


def _conditions() -> AnyPanel:
    card = Card(
        "Conditions that held",
        "A row for each condition that held at some time in the time range, and when. A rolling restart is no trouble.",
        "no condition held, as far as is known.",
        "no condition held, as far as is known",
        width=8,
    )
    held = coded_each(ONE_GROUP, GROUP_CONDITION, "condition", CONDITIONS)
    return words_over_time(card, [Query(held, "{{condition}}")], decoded(CONDITIONS))


def _moved() -> AnyPanel:
    card = Card(
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
        Query(f"sum({ONE_GROUP.happened(MOVED_PARTITIONS, _IN_STEP, matcher)})", legend)
        for matcher, legend in legends.items()
    ]
    colors = {"necessary": NEITHER, "needless": ACT, "need not known": UNKNOWN}
    return bars(card, queries, Look(colors=colors))


def _members() -> AnyPanel:
    card = Card(
        "Members, and rebalances that went wrong",
        "Members at the last recorded generation. Failed: rebalances that members joined and that never completed, as "
        "far as the log proves it. Emptied: the last member left.",
        f"Members: {GROUP_MEMBERS.unknown}",
        width=8,
    )
    queries = [
        Query(f"max({ONE_GROUP.of(GROUP_MEMBERS)})", "members"),
        Query(f"sum({ONE_GROUP.happened(REBALANCES_FAILED, _IN_STEP)})", "failed"),
        Query(f"sum({ONE_GROUP.happened(EMPTY_TRANSITIONS, _IN_STEP)})", "emptied"),
    ]
    return lines(card, queries, Look(colors={"members": NEITHER, "failed": ACT, "emptied": UNKNOWN}))


def _in_progress() -> AnyPanel:
    card = Card(
        "Rebalance in progress since",
        "How long listings have shown the group in the middle of a rebalance, at least. No record tells of it. "
        "Minutes: somebody holds it up, often a member that works on its last records for long.",
        GROUP_REBALANCING_SECONDS.unknown,
        "none in progress seen",
        width=8,
    )
    since = f"max({ONE_GROUP.of(GROUP_REBALANCING_SECONDS)})"
    return lines(card, [Query(since, "in progress")], Look(unit="s", steps=SECONDS_BEHIND))


def _commit_gaps() -> AnyPanel:
    card = Card(
        "Commit gaps over time",
        "How long nobody committed, from the last commit before a rebalance to the first after: what the rebalance "
        "cost. The darker, the more rebalances; the scale is the upper bound of each bucket.",
        COMMIT_GAP_SECONDS.unknown,
        "no gap known",
        width=16,
    )
    return buckets_over_time(card, sum_by(_LE, ONE_GROUP.happened(COMMIT_GAP_SECONDS, _IN_STEP)), "s")


def _commit_gap_quantiles() -> AnyPanel:
    card = Card(
        "Commit gaps in the time range",
        "How long half of the rebalances, 9 of 10, and all of them kept the group from committing. Read from buckets "
        "of 1, 5, 15, 60 and 300 seconds: 300 means 300 or more.",
        COMMIT_GAP_SECONDS.unknown,
        "no gap known",
        width=8,
    )
    gaps = sum_by(_LE, ONE_GROUP.happened_in_range(COMMIT_GAP_SECONDS))
    queries = [Query(f"histogram_quantile({q}, {gaps}) > 0", legend) for legend, q in _QUANTILES.items()]
    return bars_of_now(card, queries, Look(unit="s", steps=SECONDS_BEHIND))
