"""Of one group: who owns what, expected against actual, how fair that is, and what could be made of it."""

from __future__ import annotations

from dashboards.panels import AnyPanel, DisplayOptions, PanelSpec, Query, bar_gauge_panel, line_panel
from dashboards.promql import ONE_GROUP, repeat_for_rows
from dashboards.tables import Column, Label, Measure, ranked_table
from dashboards.words import ACT, ANY, NEITHER, SCORE, SINCE, SOME, UNKNOWN, VERDICTS, WATCH, label_mappings
from streaming.signals.fairness import (
    ASSIGNMENT_TIMESTAMP_SECONDS,
    ASSIGNMENT_VERDICT,
    AVOIDABLE_IDLE_MEMBERS,
    BUSIEST_MEMBER,
    DRIFT_PARTITIONS,
    EXCESS_PARTITIONS,
    IDLE_MEMBERS,
    IMBALANCE_RATIO,
    IMBALANCE_SCORE,
    MEMBER_PARTITIONS_MAX,
    MEMBER_PARTITIONS_MIN,
    TOPIC_SKEW,
    UNOWNED_PARTITIONS,
    UNOWNED_RECORDS,
    WHAT_IF_EXCESS_PARTITIONS,
    WHAT_IF_MOVED_PARTITIONS,
    WORK_IMBALANCE_RATIO,
)
from streaming.signals.members import MEMBER_EXPECTED_PARTITIONS, MEMBER_LAG, MEMBER_PARTITIONS

_SCORE_COLORS = {
    "partitions by member": "blue",
    "partitions by host": "light-blue",
    "lag by member": "orange",
    "lag by host": "light-orange",
    "throughput by member": "purple",
    "throughput by host": "light-purple",
}
_SPREAD_COLORS = {
    "most": NEITHER,
    "fewest": "light-blue",
    "excess": WATCH,
    "idle members": UNKNOWN,
    "avoidably idle": ACT,
    "unowned": ACT,
}


def fairness() -> list[AnyPanel]:
    """What is first, then how fair, then what could be done."""
    return [
        *(_owners(), _busiest(), _topic_skew()),
        *(_strategies(), _what_if()),
        *(_scores_now(), _scores(), _ratios()),
        *(_partitions_per_member(), _unowned_records()),
    ]


def _owners() -> AnyPanel:
    spec = PanelSpec(
        "Who owns what, and who should",
        "Partitions of each topic that each member has, and should have by the group's strategy. A difference is "
        "drift. Lag: the sum over all partitions of the member, in records.",
        "The setting `metrics.granularity` is not `member`. Series with member ids are optional, because each restart "
        "of a member creates new series. The group's page always shows members. " + MEMBER_PARTITIONS.unknown,
        "shown at granularity member only: see the group's page",
        width=24,
        height=10,
    )
    in_topic = 'topic=~"$topic"'
    actual, expected = (ONE_GROUP.series(one, in_topic) for one in (MEMBER_PARTITIONS, MEMBER_EXPECTED_PARTITIONS))
    columns: list[Column] = [
        *(Label("Member", "member"), Label("Instance", "group_instance_id")),
        *(Label("Client", "client_id"), Label("Host", "client_host"), Label("Topic", "topic")),
        Measure("Has", actual),
        Measure("Should have", expected),
        Measure("Too many", f"{actual} - {expected}", steps=ANY),
        Measure(
            "Lag of the member",
            repeat_for_rows(f"max by (member) ({ONE_GROUP.selector(MEMBER_LAG)})", "member", actual),
        ),
    ]
    return ranked_table(spec, columns, sort_by="Has")


def _busiest() -> AnyPanel:
    spec = PanelSpec(
        "Who holds too much",
        "The busiest member of a group whose busiest member has more partitions than necessary, and the start time.",
        BUSIEST_MEMBER.unknown,
        "nobody holds too much, as far as is known",
    )
    since = f"1000 * {ONE_GROUP.series(ASSIGNMENT_TIMESTAMP_SECONDS)} and on (cluster, group) {ONE_GROUP.selector(BUSIEST_MEMBER)}"
    columns: list[Column] = [
        *(Label("Client", "client_id"), Label("Host", "client_host"), Label("Instance", "group_instance_id")),
        Measure("Partitions", ONE_GROUP.series(BUSIEST_MEMBER), steps=SOME),
        Measure("Since", since, unit=SINCE),
    ]
    return ranked_table(spec, columns, sort_by="Partitions")


def _strategies() -> AnyPanel:
    spec = PanelSpec(
        "Expected against actual, by strategy",
        "For the group's own strategy: partitions whose owner breaks one of its rules. For other strategies: "
        "partitions that the strategy would place elsewhere. Which partitions: on the group's page.",
        DRIFT_PARTITIONS.unknown,
    )
    columns: list[Column] = [
        Label("Strategy", "strategy"),
        Measure("Partitions elsewhere", ONE_GROUP.series(DRIFT_PARTITIONS)),
        Label("Verdict on its own", "verdict", label_mappings(VERDICTS)),
        Measure("", ONE_GROUP.series(ASSIGNMENT_VERDICT)),
    ]
    return ranked_table(spec, columns, sort_by="Partitions elsewhere", largest_first=False)


def _scores_now() -> AnyPanel:
    spec = PanelSpec(
        "Fairness scores now",
        "100: as fair as any valid assignment. 0: all is with one who need not have it. Of partitions, lag and "
        "throughput, by member and by client host. Red below 50, yellow below 90.",
        IMBALANCE_SCORE.unknown,
        width=8,
    )
    query = Query(f"sort({ONE_GROUP.series(IMBALANCE_SCORE)})", "{{measure}} by {{scope}}")
    return bar_gauge_panel(spec, [query], DisplayOptions(steps=SCORE, maximum=100))


def _scores() -> AnyPanel:
    spec = PanelSpec(
        "Fairness scores over time",
        "As beside. A fall at a rebalance: the new assignment is worse. A fall without one: the work changed.",
        IMBALANCE_SCORE.unknown,
        width=8,
    )
    query = Query(ONE_GROUP.series(IMBALANCE_SCORE), "{{measure}} by {{scope}}")
    return line_panel(spec, [query], DisplayOptions(colors=_SCORE_COLORS, maximum=100))


def _ratios() -> AnyPanel:
    spec = PanelSpec(
        "Most work of one over the mean",
        "2: somebody has twice what all have on average, of partitions, lag or throughput. Unlike the score it does "
        "not ask whether any assignment could do better.",
        WORK_IMBALANCE_RATIO.unknown,
        width=8,
    )
    queries = [
        Query(f"max({ONE_GROUP.selector(IMBALANCE_RATIO)})", "partitions by member"),
        Query(ONE_GROUP.series(WORK_IMBALANCE_RATIO), "{{measure}} by {{scope}}"),
    ]
    return line_panel(spec, queries, DisplayOptions(colors=_SCORE_COLORS))


def _partitions_per_member() -> AnyPanel:
    spec = PanelSpec(
        "Partitions of one member, and of nobody",
        "The most and the fewest any member holds, and how many of the most are beyond what the fairest assignment "
        "would give its busiest member. Idle: members without a partition; avoidable ones are red, for the others "
        "there is no partition. Unowned: partitions that nobody reads.",
        MEMBER_PARTITIONS_MAX.unknown,
        width=16,
    )
    signals = {
        "most": MEMBER_PARTITIONS_MAX,
        "fewest": MEMBER_PARTITIONS_MIN,
        "excess": EXCESS_PARTITIONS,
        "idle members": IDLE_MEMBERS,
        "avoidably idle": AVOIDABLE_IDLE_MEMBERS,
        "unowned": UNOWNED_PARTITIONS,
    }
    queries = [Query(f"max({ONE_GROUP.selector(signal)})", legend) for legend, signal in signals.items()]
    return line_panel(spec, queries, DisplayOptions(colors=_SPREAD_COLORS))


def _unowned_records() -> AnyPanel:
    spec = PanelSpec(
        "Records in partitions without an owner",
        "Records that wait in partitions of subscribed topics that no member owns.",
        UNOWNED_RECORDS.unknown,
        "no partition is without an owner, as far as is known",
        width=8,
    )
    return line_panel(spec, [Query(f"max({ONE_GROUP.selector(UNOWNED_RECORDS)})", "records")])


def _what_if() -> AnyPanel:
    spec = PanelSpec(
        "What if it had another strategy?",
        "Excess partitions that each strategy would leave, and partitions that would move once to get there; the first "
        "row is the one to take. `as it is`: what the group has now.",
        f"The table has only the row `as it is`. {WHAT_IF_EXCESS_PARTITIONS.unknown}",
    )
    as_it_is = f'label_replace({ONE_GROUP.series(EXCESS_PARTITIONS)}, "strategy", "as it is", "", "")'
    columns: list[Column] = [
        Label("Strategy", "strategy"),
        Measure("Excess", f"{ONE_GROUP.series(WHAT_IF_EXCESS_PARTITIONS)} or {as_it_is}", steps=SOME),
        Measure("Would move", ONE_GROUP.series(WHAT_IF_MOVED_PARTITIONS)),
    ]
    return ranked_table(spec, columns, sort_by="Excess", largest_first=False)


def _topic_skew() -> AnyPanel:
    spec = PanelSpec(
        "Topic skew",
        "Partitions that the same members have too many because each topic is dealt by itself, as range does. The "
        "remedy is the strategy that would end that; empty where none is known.",
        TOPIC_SKEW.unknown,
        "no topic skew, as far as is known",
    )
    columns: list[Column] = [Label("Remedy", "remedy"), Measure("Partitions", ONE_GROUP.series(TOPIC_SKEW), steps=SOME)]
    return ranked_table(spec, columns, sort_by="Partitions")
