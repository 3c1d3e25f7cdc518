"""Define the dashboard of one group: its state, its rebalances, the fairness of its assignment, and its lag."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

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
from dashboards.runbook import firing_alerts_panel
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
from streaming.signals.groups import GROUP_INFO, GROUP_MEMBERS
from streaming.signals.lag import GROUP_LAG, GROUP_LAG_SECONDS, GROUP_LAG_SECONDS_IS_BOUND, GROUP_STATUS
from streaming.signals.monitor import READY
from streaming.signals.partitions import TOPIC_LAG
from streaming.signals.rebalances import GROUP_CONDITION, REBALANCES_BY_CAUSE


def dashboard() -> build.Dashboard:
    """Return the dashboard. It shows the current state first, then rebalances, fairness and lag."""
    variables = [
        source_variable(),
        single_choice_variable("cluster", "Cluster", f"label_values({READY.name}, cluster)"),
        single_choice_variable("group", "Group", f'label_values({GROUP_INFO.name}{{cluster="$cluster"}}, group)'),
        multiple_choice_variable("topic", "Topic", f"label_values({ONE_GROUP.selector(TOPIC_LAG)}, topic)"),
        monitor_variable(),
    ]
    about = "One consumer group: its rebalances, the fairness of its assignment, and its lag."
    rows = {
        "Current state": [*_stat_panels(), firing_alerts_panel(ONE_GROUP), _state_over_time()],
        "What just happened?": rebalances(),
        "Is the work shared fairly?": fairness(),
        "Is the group keeping up?": lag(),
    }
    result = create_dashboard(GROUP_UID, "Rebalance monitor: one group", about, variables, rows)
    page = build.DashboardLink("This group's page at the monitor").url(
        monitor_page_url("${cluster:percentencode}", "${group:percentencode}")
    )
    return add_events(result.link(page.target_blank(True)), [_rebalance_event(), _condition_event()])


def _stat_panels() -> list[AnyPanel]:
    """Return eight panels in one line. Panels with words come first, then panels with numbers."""
    return [
        _label_panel("State", "The state of the group, with Kafka's name.", GROUP_INFO, "state", STATES),
        _label_panel("Status", "The worst status of the group's partitions.", GROUP_STATUS, "status", STATUSES),
        _label_panel(
            "Assignment",
            "Result of comparing the assignment with the group's own strategy. `differs from java`: the leader's "
            "client library is known to differ from Java's. `withheld`: a cooperative rebalance assigns partitions in "
            "its next round.",
            ASSIGNMENT_VERDICT,
            "verdict",
            VERDICTS,
        ),
        _conditions_now(),
        _number_panel("Members", "Number of members in the last recorded generation.", GROUP_MEMBERS, DisplayOptions()),
        _number_panel(
            "Excess partitions",
            "Partitions of the busiest member beyond the fairest possible maximum.",
            EXCESS_PARTITIONS,
            DisplayOptions(steps=SOME),
        ),
        _number_panel(
            "Record lag", "Records that the group has not committed.", GROUP_LAG, DisplayOptions(unit="short")
        ),
        _number_panel(
            "Time lag",
            "Age of the next record that the group must read, in the partition with the largest lag in time.",
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
        "Number of active conditions, for example a rebalance storm. The panel `Conditions over time` below shows "
        "which conditions are active.",
        "The monitor is not ready, or the state of the group is unknown.",
        width=3,
        height=4,
    )
    ready = f'{READY.name}{{cluster="$cluster"}} == 1'
    zero_if_known = f"0 * count({ONE_GROUP.series(GROUP_INFO)} and on (cluster) {ready})"
    return stat_panel(
        spec, f"count({ONE_GROUP.series(GROUP_CONDITION)}) or {zero_if_known}", DisplayOptions(steps=ANY, mappings=NONE)
    )


def _state_over_time() -> AnyPanel:
    spec = PanelSpec(
        "State over time",
        "State of the group, worst status of its partitions, verdict on its assignment, and precision of its lag in "
        "time (exact or a lower bound). Hover over a bar for its start time.",
        "During a gap, nothing is known. The monitor was not ready, or Prometheus did not scrape it.",
        width=24,
        height=7,
    )
    bound = f"{BOUNDS[0].code} + max({ONE_GROUP.selector(GROUP_LAG_SECONDS_IS_BOUND)})"
    queries = [
        Query(code_query(ONE_GROUP, GROUP_INFO, "state", STATES), "state"),
        Query(code_query(ONE_GROUP, GROUP_STATUS, "status", STATUSES), "status"),
        Query(code_query(ONE_GROUP, ASSIGNMENT_VERDICT, "verdict", VERDICTS), "assignment"),
        Query(bound, "lag in time"),
    ]
    return timeline_panel(spec, queries, code_mappings(STATES, STATUSES, VERDICTS, BOUNDS))


def _rebalance_event() -> Event:
    causes = sum_by("cause", ONE_GROUP.increase(REBALANCES_BY_CAUSE, "$__interval"))
    return Event("Rebalances", f"{causes} > 0", "rebalance: {{cause}}", NEITHER)


def _condition_event() -> Event:
    started = f"{ONE_GROUP.series(GROUP_CONDITION)} unless {ONE_GROUP.series_before(GROUP_CONDITION, '$__interval')}"
    return Event("Condition starts", started, "{{condition}}", ACT)
