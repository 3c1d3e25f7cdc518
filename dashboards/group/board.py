"""Define the dashboard of one group: three open rows for the on-call engineer, and collapsed rows with details."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.boards import (
    GROUP_UID,
    Event,
    Row,
    create_dashboard,
    multiple_choice_variable,
    page_url_variable,
    single_choice_variable,
    source_variable,
)
from dashboards.group.fairness import assignment_panels, fairness_panels
from dashboards.group.lag import lag_panels
from dashboards.group.now import about_the_group, fairness_now, keeping_up, latest_events, rebalance_increase
from dashboards.group.rebalances import rebalance_panels
from dashboards.promql import ONE_CLUSTER, ONE_GROUP
from dashboards.words import ACT, NEITHER
from streaming.signals.groups import GROUP_INFO
from streaming.signals.monitor import READY
from streaming.signals.partitions import TOPIC_LAG
from streaming.signals.rebalances import GROUP_CONDITION


def dashboard() -> build.Dashboard:
    """Return the dashboard: three open rows, then collapsed rows with details."""
    variables = [
        source_variable(),
        single_choice_variable("cluster", "Cluster", f"label_values({READY.name}, cluster)"),
        single_choice_variable("group", "Group", f"label_values({ONE_CLUSTER.selector(GROUP_INFO)}, group)"),
        multiple_choice_variable("topic", "Topic", f"label_values({ONE_GROUP.selector(TOPIC_LAG)}, topic)"),
        page_url_variable(),
    ]
    about = "This dashboard shows the lag of one consumer group, the fairness of its assignment, and its rebalances."
    rows = [
        Row("Is the group keeping up?", keeping_up()),
        Row("Is its work shared fairly?", fairness_now()),
        Row("What just happened?", latest_events()),
        Row("Details: lag by topic and partition, lost records, expiry", lag_panels(), is_collapsed=True),
        Row("Details: owners and strategies", assignment_panels(), is_collapsed=True),
        Row("Details: fairness over time", fairness_panels(), is_collapsed=True),
        Row("Details: rebalances, conditions and commit gaps", rebalance_panels(), is_collapsed=True),
        Row("Details: type, coordinator, team and limits of the group", about_the_group(), is_collapsed=True),
    ]
    result = create_dashboard(GROUP_UID, "Rebalance monitor: one group", about, variables, rows)
    page_url = "${page_url}/groups/?id=${group:percentencode}&cluster=${cluster:percentencode}"
    page = build.DashboardLink("This group's page on the monitor").url(page_url).target_blank(True)
    started = f"{ONE_GROUP.series(GROUP_CONDITION)} unless {ONE_GROUP.series_before(GROUP_CONDITION, '$__interval')}"
    events = [
        Event("Rebalances", f"({rebalance_increase()}) > 0", "rebalance: {{cause}}", NEITHER),
        Event("Condition starts", started, "{{condition}}", ACT),
    ]
    return result.link(page).annotations(list(events))
