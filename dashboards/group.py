"""One group: how it is, what just happened, whether its work is fairly shared, and whether it keeps up."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.alerts import firing
from dashboards.boards import (
    GROUP_UID,
    Event,
    board,
    monitor_page,
    monitor_variable,
    one_of,
    some_of,
    source_variable,
    with_events,
)
from dashboards.group_fairness import fairness
from dashboards.group_lag import lag
from dashboards.group_rebalances import rebalances
from dashboards.panels import AnyPanel, Card, Look, Query, figure, words_over_time
from dashboards.promql import ONE_GROUP, sum_by
from dashboards.words import (
    ACT,
    ANY,
    BOUNDS,
    NEITHER,
    NONE,
    SECONDS_BEHIND,
    SOME,
    STATES,
    STATUSES,
    VERDICTS,
    Word,
    coded,
    decoded,
)
from streaming.signals import Signal
from streaming.signals.fairness import ASSIGNMENT_VERDICT, EXCESS_PARTITIONS
from streaming.signals.groups import GROUP_MEMBERS, GROUP_STATE
from streaming.signals.lag import GROUP_LAG, GROUP_LAG_SECONDS, GROUP_LAG_SECONDS_IS_BOUND, GROUP_STATUS
from streaming.signals.monitor import READY
from streaming.signals.partitions import TOPIC_LAG
from streaming.signals.rebalances import GROUP_CONDITION, REBALANCES_BY_CAUSE


def dashboard() -> build.Dashboard:
    """How it is now comes first, in words; then the three questions of whoever is on call."""
    variables = [
        source_variable(),
        one_of("cluster", "Cluster", f"label_values({READY.name}, cluster)"),
        one_of("group", "Group", f'label_values({GROUP_STATE.name}{{cluster="$cluster"}}, group)'),
        some_of("topic", "Topic", f"label_values({ONE_GROUP.of(TOPIC_LAG)}, topic)"),
        monitor_variable(),
    ]
    about = "One consumer group: what just happened to it, whether its work is fairly shared, whether it keeps up."
    rows = {
        "How it is": [*_figures(), firing(ONE_GROUP), _words()],
        "What just happened?": rebalances(),
        "Is its work fairly shared?": fairness(),
        "Does it keep up?": lag(),
    }
    made = board(GROUP_UID, "Rebalance monitor: one group", about, variables, rows)
    page = build.DashboardLink("Its page at the monitor").url(
        monitor_page("${cluster:percentencode}", "${group:percentencode}")
    )
    return with_events(made.link(page.target_blank(True)), [_rebalanced(), _condition_began()])


def _figures() -> list[AnyPanel]:
    """Eight of them side by side, words first."""
    return [
        _word("State", "In Kafka's words.", GROUP_STATE, "state", STATES),
        _word("Status", "The worst of its partitions.", GROUP_STATUS, "status", STATUSES),
        _word(
            "Assignment",
            "Whether the assignment is what the group's own strategy promises. `differs from java`: the leader's "
            "program is known to differ. `withheld`: partitions wait for their next round.",
            ASSIGNMENT_VERDICT,
            "verdict",
            VERDICTS,
        ),
        _conditions_now(),
        _number("Members", "At its last recorded generation.", GROUP_MEMBERS, Look()),
        _number("Excess partitions", "Its busiest member's, beyond need.", EXCESS_PARTITIONS, Look(steps=SOME)),
        _number("Lag", "Records it has yet to commit.", GROUP_LAG, Look(unit="short")),
        _number(
            "Behind",
            "Age of the next record it has to read, of its partitions the most.",
            GROUP_LAG_SECONDS,
            Look(unit="s", steps=SECONDS_BEHIND),
        ),
    ]


def _word(title: str, reads: str, signal: Signal, label: str, words: tuple[Word, ...]) -> AnyPanel:
    card = Card(title, reads, signal.unknown, width=3, height=4)
    return figure(card, coded(ONE_GROUP, signal, label, words), Look(mappings=decoded(words)))


def _number(title: str, reads: str, signal: Signal, look: Look) -> AnyPanel:
    return figure(Card(title, reads, signal.unknown, width=3, height=4), ONE_GROUP.each(signal), look)


def _conditions_now() -> AnyPanel:
    card = Card(
        "Conditions",
        "How many hold now, as a storm or a stuck rebalance; which ones is below.",
        "the monitor is not ready, or the group's condition is not known.",
        width=3,
        height=4,
    )
    ready = f'{READY.name}{{cluster="$cluster"}} == 1'
    should_report = f"0 * count({ONE_GROUP.each(GROUP_STATE)} and on (cluster) {ready})"
    return figure(card, f"count({ONE_GROUP.each(GROUP_CONDITION)}) or {should_report}", Look(steps=ANY, mappings=NONE))


def _words() -> AnyPanel:
    card = Card(
        "How it was, in words",
        "State of the group, worst status of its partitions, verdict on its assignment, and whether its lag in time is "
        "exact or a lower bound. Hover for when each began.",
        "a gap is a time of which nothing is known: the monitor was not ready, or not scraped.",
        width=24,
        height=7,
    )
    bound = f"{BOUNDS[0].code} + max({ONE_GROUP.of(GROUP_LAG_SECONDS_IS_BOUND)})"
    queries = [
        Query(coded(ONE_GROUP, GROUP_STATE, "state", STATES), "state"),
        Query(coded(ONE_GROUP, GROUP_STATUS, "status", STATUSES), "status"),
        Query(coded(ONE_GROUP, ASSIGNMENT_VERDICT, "verdict", VERDICTS), "assignment"),
        Query(bound, "lag in time is"),
    ]
    return words_over_time(card, queries, decoded(STATES, STATUSES, VERDICTS, BOUNDS))


def _rebalanced() -> Event:
    causes = sum_by("cause", ONE_GROUP.happened(REBALANCES_BY_CAUSE, "$__interval"))
    return Event("Rebalances", f"{causes} > 0", "rebalance: {{cause}}", NEITHER)


def _condition_began() -> Event:
    began = f"{ONE_GROUP.each(GROUP_CONDITION)} unless {ONE_GROUP.each_before(GROUP_CONDITION, '$__interval')}"
    return Event("Conditions begin", began, "{{condition}}", ACT)
