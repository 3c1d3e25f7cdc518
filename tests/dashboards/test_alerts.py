"""Test when each alert fires and when it does not. promtool runs every case on the rules in `dashboards/rules`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from tests.dashboards.assignment_cases import ASSIGNMENTS
from tests.dashboards.coordinator_cases import COORDINATORS
from tests.dashboards.healthy_cases import HEALTHY
from tests.dashboards.monitor_cases import MONITOR
from tests.dashboards.progress_cases import PROGRESS
from tests.dashboards.rebalance_cases import REBALANCES
from tests.dashboards.retention_cases import RETENTION
from tests.dashboards.rules import ALERTS, LINKS, WARNING, AlertCase, promtool_output

CASES = (*ASSIGNMENTS, *REBALANCES, *PROGRESS, *RETENTION, *COORDINATORS, *MONITOR)
LINK_CASES = tuple({"group" in case.labels: case for case in CASES if case.says}.values())
"""A case with texts of an alert about a group, and one of an alert about the monitor. All alerts use the same links."""


def title(case: AlertCase) -> str:
    """Return the name of a case."""
    return f"{case.alert}: {case.why}"


@pytest.mark.parametrize("case", CASES, ids=title)
def test_an_alert_fires_when_it_should_and_not_when_it_should_not(case: AlertCase, tmp_path: Path) -> None:
    assert promtool_output(case, tmp_path) == ""


@pytest.mark.parametrize("case", HEALTHY, ids=title)
def test_no_alert_fires_in_a_healthy_situation(case: AlertCase, tmp_path: Path) -> None:
    """Engineers ignore alerts if deployments wake them."""
    assert promtool_output(case, tmp_path) == ""


@pytest.mark.parametrize(
    "unset",
    [
        pytest.param({"page_url"}, id="the scraped address"),
        pytest.param({"runbook_url"}, id="the runbook in Grafana"),
        pytest.param({"runbook_url", "grafana_url"}, id="the path of the runbook, and no dashboard"),
    ],
)
@pytest.mark.parametrize("case", LINK_CASES, ids=lambda case: case.alert)
def test_without_an_address_in_the_settings_a_link_uses_the_next_best(
    case: AlertCase, unset: Collection[str], tmp_path: Path
) -> None:
    """The rules are in `dashboards/alerts/links.py`. A guess, for example localhost, would lead nowhere."""
    known = {name: "" if name in unset else url for name, url in LINKS.items()}
    assert promtool_output(replace(case, links=known), tmp_path) == ""


@pytest.mark.parametrize("alert", sorted({rule["alert"] for rule in ALERTS}))
def test_every_alert_has_cases_for_each_severity_for_its_end_and_for_its_texts(alert: str) -> None:
    of_alert = [case for case in CASES if case.alert == alert]
    severities = {rule["labels"]["severity"] for rule in ALERTS if rule["alert"] == alert}
    plain = {WARNING if "{{" in severity else severity for severity in severities}
    assert plain <= {severity for case in of_alert for severity in case.fires}
    assert [case for case in of_alert if not case.fires]
    assert [case for case in of_alert if case.says]
