"""Define the fairness panels of one group: owners, fairness scores, and other strategies."""

from __future__ import annotations

from dashboards.panels import AnyPanel, DisplayOptions, PanelSpec, Query, line_panel
from dashboards.promql import ONE_GROUP, repeat_for_rows
from dashboards.tables import Column, Label, Measure, ranked_table
from dashboards.words import ACT, ANY, NEITHER, SOME, UNKNOWN, VERDICTS, WATCH, label_mappings
from streaming.signals import fairness, members

_SCORE_COLORS = {
    "partitions by member": "blue",
    "partitions by host": "light-blue",
    "lag by member": "orange",
    "lag by host": "light-orange",
    "throughput by member": "purple",
    "throughput by host": "light-purple",
}
_SPREAD_COLORS = {"most": NEITHER, "excess": WATCH, "idle members": UNKNOWN, "avoidably idle": ACT, "unowned": ACT}


def assignment_panels() -> list[AnyPanel]:
    """Return the panels of the assignment, for example its owners and its topic skew."""
    return [_owners(), _strategies(), _what_if(), _topic_skew(), _unowned_records()]


def fairness_panels() -> list[AnyPanel]:
    """Return the panels of scores and partitions over time."""
    return [_scores(), _ratios(), _partitions_per_member()]


def _owners() -> AnyPanel:
    spec = PanelSpec(
        "Actual and expected owners",
        "`Actual` is the number of partitions of the topic that the member has. `Expected` is the number that the "
        "group's strategy assigns to the member. A difference between the two numbers means drift. `Lag of the "
        "member` is the total lag of all partitions of the member, in records.",
        "If the setting `metrics.granularity` is not `member`, these series are not exported. They are optional, "
        "because each restart of a member creates new series. The group's page always shows the members. "
        + members.MEMBER_PARTITIONS.unknown,
        "only shown with granularity member; see the group's page",
        width=24,
        height=10,
    )
    in_topic = 'topic=~"$topic"'
    actual, expected = (
        ONE_GROUP.series(one, in_topic) for one in (members.MEMBER_PARTITIONS, members.MEMBER_EXPECTED_PARTITIONS)
    )
    columns: list[Column] = [
        *(Label("Member", "member"), Label("Instance", "group_instance_id")),
        *(Label("Client", "client_id"), Label("Host", "client_host"), Label("Topic", "topic")),
        Measure("Actual", actual),
        Measure("Expected", expected),
        Measure("Difference", f"{actual} - {expected}", steps=ANY),
        Measure(
            "Lag of the member",
            repeat_for_rows(f"max by (member) ({ONE_GROUP.selector(members.MEMBER_LAG)})", "member", actual),
        ),
    ]
    return ranked_table(spec, columns, sort_by="Actual")


def _strategies() -> AnyPanel:
    spec = PanelSpec(
        "Actual assignment compared with each strategy",
        "For the group's strategy, `Partitions` is the number of partitions whose owner breaks a rule of the strategy. "
        "For any other strategy, `Partitions` is the number of partitions whose owner would be different from the "
        "present owner. The group's page lists these partitions.",
        fairness.DRIFT_PARTITIONS.unknown,
    )
    columns: list[Column] = [
        Label("Strategy", "strategy"),
        Measure("Partitions", ONE_GROUP.series(fairness.DRIFT_PARTITIONS)),
        Label("Verdict (own strategy)", "verdict", label_mappings(VERDICTS)),
        Measure("", ONE_GROUP.series(fairness.ASSIGNMENT_VERDICT)),
    ]
    return ranked_table(spec, columns, sort_by="Partitions", largest_first=False)


def _scores() -> AnyPanel:
    spec = PanelSpec(
        "Fairness scores over time",
        "A score of 100 means that no valid assignment is fairer than the assignment at that time. A score of 0 means "
        "that one member does all the work that others could share. Partitions, lag and throughput each have a score "
        "by member and a score by client host. If a score falls at a rebalance, the new assignment is less fair than "
        "the previous assignment. If a score falls without a rebalance, the work of the partitions changed.",
        fairness.IMBALANCE_SCORE.unknown,
    )
    query = Query(ONE_GROUP.series(fairness.IMBALANCE_SCORE), "{{measure}} by {{scope}}")
    return line_panel(spec, [query], DisplayOptions(colors=_SCORE_COLORS, maximum=100))


def _ratios() -> AnyPanel:
    spec = PanelSpec(
        "Busiest member compared with the mean",
        "Lag or throughput of the busiest member or host, divided by the mean of all members or hosts. The value 2 "
        "means twice the mean. Only the fairness score shows whether a fairer assignment exists.",
        fairness.WORK_IMBALANCE_RATIO.unknown,
    )
    query = Query(ONE_GROUP.series(fairness.WORK_IMBALANCE_RATIO), "{{measure}} by {{scope}}")
    return line_panel(spec, [query], DisplayOptions(colors=_SCORE_COLORS))


def _partitions_per_member() -> AnyPanel:
    spec = PanelSpec(
        "Partitions per member and unowned partitions",
        "`most` is the number of partitions of the member with the most partitions. `excess` is the difference "
        "between `most` and the same number in the fairest valid assignment. `idle members` is the number of members "
        "without partitions. `avoidably idle` is the number of idle members that would have partitions in a different "
        "valid assignment. `unowned` is the number of subscribed partitions without an owner.",
        fairness.MEMBER_PARTITIONS_MAX.unknown,
        width=24,
    )
    signals = {
        "most": fairness.MEMBER_PARTITIONS_MAX,
        "excess": fairness.EXCESS_PARTITIONS,
        "idle members": fairness.IDLE_MEMBERS,
        "avoidably idle": fairness.AVOIDABLE_IDLE_MEMBERS,
        "unowned": fairness.UNOWNED_PARTITIONS,
    }
    queries = [Query(f"max({ONE_GROUP.selector(signal)})", legend) for legend, signal in signals.items()]
    return line_panel(spec, queries, DisplayOptions(colors=_SPREAD_COLORS))


def _unowned_records() -> AnyPanel:
    spec = PanelSpec(
        "Records in partitions without an owner",
        "Number of records that wait in subscribed partitions without an owner.",
        fairness.UNOWNED_RECORDS.unknown,
        "no known unowned partition",
    )
    return line_panel(spec, [Query(f"max({ONE_GROUP.selector(fairness.UNOWNED_RECORDS)})", "records")])


def _what_if() -> AnyPanel:
    spec = PanelSpec(
        "What-if: other strategies",
        "`Excess` is the partition count that the busiest member would have with the strategy, minus the largest "
        "partition count in the fairest valid assignment. `Moved partitions` is the number of partitions that would "
        "move if the group changed to the strategy. The row with the smallest excess comes first. The row `present "
        "assignment` shows the excess now.",
        f"The table has only the row `present assignment`. {fairness.WHAT_IF_EXCESS_PARTITIONS.unknown}",
    )
    present = f'label_replace({ONE_GROUP.series(fairness.EXCESS_PARTITIONS)}, "strategy", "present assignment", "", "")'
    columns: list[Column] = [
        Label("Strategy", "strategy"),
        Measure("Excess", f"{ONE_GROUP.series(fairness.WHAT_IF_EXCESS_PARTITIONS)} or {present}", steps=SOME),
        Measure("Moved partitions", ONE_GROUP.series(fairness.WHAT_IF_MOVED_PARTITIONS)),
    ]
    return ranked_table(spec, columns, sort_by="Excess", largest_first=False)


def _topic_skew() -> AnyPanel:
    spec = PanelSpec(
        "Topic skew",
        "In each topic, some members have one partition more than others. If the same members have the extra partition "
        "in several topics, the topics are skewed. The panel counts these extra partitions. `Remedy` is a strategy "
        "that would remove the skew, or is empty if no such strategy is known.",
        fairness.TOPIC_SKEW.unknown,
        "no known topic skew",
    )
    columns: list[Column] = [
        Label("Remedy", "remedy"),
        Measure("Partitions", ONE_GROUP.series(fairness.TOPIC_SKEW), steps=SOME),
    ]
    return ranked_table(spec, columns, sort_by="Partitions")
