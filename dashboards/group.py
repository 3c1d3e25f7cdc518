"""One group: how it is, what just happened, whether its work is fairly shared, and whether it keeps up."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.alerts import firing_alerts_panel
from dashboards.boards import (
    GROUP_UID,
    Event,
    add_events,
    create_dashboard,
    monitor_page_url,
    monitor_variable,
    multiple_choice_variable,
    single_choice_variable,
    source_variable,
)
from dashboards.group_fairness import fairness
from dashboards.group_lag import lag
from dashboards.group_rebalances import rebalances
from dashboards.panels import AnyPanel, DisplayOptions, PanelSpec, Query, stat_panel, timeline_panel
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
    code_mappings,
    code_query,
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
        single_choice_variable("cluster", "Cluster", f"label_values({READY.name}, cluster)"),
        single_choice_variable("group", "Group", f'label_values({GROUP_STATE.name}{{cluster="$cluster"}}, group)'),
        multiple_choice_variable("topic", "Topic", f"label_values({ONE_GROUP.selector(TOPIC_LAG)}, topic)"),
        monitor_variable(),
    ]
    about = "One consumer group: what just happened to it, whether its work is fairly shared, whether it keeps up."
    rows = {
        "How it is": [*_stat_panels(), firing_alerts_panel(ONE_GROUP), _state_over_time()],
        "What just happened?": rebalances(),
        "Is its work fairly shared?": fairness(),
        "Does it keep up?": lag(),
    }
    result = create_dashboard(GROUP_UID, "Rebalance monitor: one group", about, variables, rows)
    page = build.DashboardLink("Its page at the monitor").url(
        monitor_page_url("${cluster:percentencode}", "${group:percentencode}")
    )
    return add_events(result.link(page.target_blank(True)), [_rebalance_event(), _condition_event()])


def _stat_panels() -> list[AnyPanel]:
    """Eight of them side by side, words first."""
    return [
        _label_panel("State", "In Kafka's words.", GROUP_STATE, "state", STATES),
        _label_panel("Status", "The worst of its partitions.", GROUP_STATUS, "status", STATUSES),
        _label_panel(
            "Assignment",
            "Whether the assignment is what the group's own strategy promises. `differs from java`: the leader's "
            "program is known to differ. `withheld`: partitions wait for their next round.",
            ASSIGNMENT_VERDICT,
            "verdict",
            VERDICTS,
        ),
        _conditions_now(),
        _number_panel("Members", "At its last recorded generation.", GROUP_MEMBERS, DisplayOptions()),
        _number_panel(
            "Excess partitions", "Its busiest member's, beyond need.", EXCESS_PARTITIONS, DisplayOptions(steps=SOME)
        ),
        _number_panel("Lag", "Records it has yet to commit.", GROUP_LAG, DisplayOptions(unit="short")),
        _number_panel(
            "Behind",
            "Age of the next record it has to read, of its partitions the most.",
            GROUP_LAG_SECONDS,
            DisplayOptions(unit="s", steps=SECONDS_BEHIND),
        ),
    ]


def _label_panel(title: str, how_to_read: str, signal: Signal, label: str, words: tuple[Word, ...]) -> AnyPanel:
    spec = PanelSpec(title, how_to_read, signal.unknown, width=3, height=4)
    return stat_panel(spec, code_query(ONE_GROUP, signal, label, words), DisplayOptions(mappings=code_mappings(words)))


def _number_panel(title: str, how_to_read: str, signal: Signal, display: DisplayOptions) -> AnyPanel:
    return stat_panel(
        PanelSpec(title, how_to_read, signal.unknown, width=3, height=4), ONE_GROUP.series(signal), display
    )


def _conditions_now() -> AnyPanel:
    spec = PanelSpec(
        "Conditions",
        "How many hold now, as a storm or a stuck rebalance; which ones is below.",
        "the monitor is not ready, or the group's condition is not known.",
        width=3,
        height=4,
    )
    ready = f'{READY.name}{{cluster="$cluster"}} == 1'
    zero_if_known = f"0 * count({ONE_GROUP.series(GROUP_STATE)} and on (cluster) {ready})"
    return stat_panel(
        spec, f"count({ONE_GROUP.series(GROUP_CONDITION)}) or {zero_if_known}", DisplayOptions(steps=ANY, mappings=NONE)
    )


def _state_over_time() -> AnyPanel:
    spec = PanelSpec(
        "How it was, in words",
        "State of the group, worst status of its partitions, verdict on its assignment, and whether its lag in time is "
        "exact or a lower bound. Hover for when each began.",
        "a gap is a time of which nothing is known: the monitor was not ready, or not scraped.",
        width=24,
        height=7,
    )
    bound = f"{BOUNDS[0].code} + max({ONE_GROUP.selector(GROUP_LAG_SECONDS_IS_BOUND)})"
    queries = [
        Query(code_query(ONE_GROUP, GROUP_STATE, "state", STATES), "state"),
        Query(code_query(ONE_GROUP, GROUP_STATUS, "status", STATUSES), "status"),
        Query(code_query(ONE_GROUP, ASSIGNMENT_VERDICT, "verdict", VERDICTS), "assignment"),
        Query(bound, "lag in time is"),
    ]
    return timeline_panel(spec, queries, code_mappings(STATES, STATUSES, VERDICTS, BOUNDS))


def _rebalance_event() -> Event:
    causes = sum_by("cause", ONE_GROUP.increase(REBALANCES_BY_CAUSE, "$__interval"))
    return Event("Rebalances", f"{causes} > 0", "rebalance: {{cause}}", NEITHER)


def _condition_event() -> Event:
    started = f"{ONE_GROUP.series(GROUP_CONDITION)} unless {ONE_GROUP.series_before(GROUP_CONDITION, '$__interval')}"
    return Event("Conditions begin", started, "{{condition}}", ACT)
