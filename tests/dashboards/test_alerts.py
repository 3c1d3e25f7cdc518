"""Test when each alert fires and when it does not. promtool runs every case on the rules in `dashboards/rules`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from tests.dashboards.assignment_cases import ASSIGNMENTS
from tests.dashboards.healthy_cases import HEALTHY
from tests.dashboards.monitor_cases import MONITOR
from tests.dashboards.progress_cases import PROGRESS, RETENTION
from tests.dashboards.rebalance_cases import REBALANCES
from tests.dashboards.rules import ALERTS, EXTERNAL_LABELS, AlertCase, promtool_output

CASES = (*ASSIGNMENTS, *REBALANCES, *PROGRESS, *RETENTION, *MONITOR)
TEXT_CASES = tuple({case.alert: case for case in CASES if case.says}.values())
"""One case with texts for each alert."""


def _title(case: AlertCase) -> str:
    return f"{case.alert}: {case.why}"


@pytest.mark.parametrize("case", CASES, ids=_title)
def test_an_alert_fires_when_it_should_and_not_when_it_should_not(case: AlertCase, tmp_path: Path) -> None:
    assert promtool_output(case, tmp_path) == ""


@pytest.mark.parametrize("case", HEALTHY, ids=_title)
def test_no_alert_fires_in_a_healthy_situation(case: AlertCase, tmp_path: Path) -> None:
    """Engineers ignore alerts if deployments wake them."""
    assert promtool_output(case, tmp_path) == ""


@pytest.mark.parametrize(
    "unset",
    [
        pytest.param({"rebalance_monitor_runbook_url"}, id="the runbook in Grafana"),
        pytest.param({"rebalance_monitor_runbook_url", "grafana_url"}, id="the path of the file, without an address"),
    ],
)
@pytest.mark.parametrize("case", TEXT_CASES, ids=lambda case: case.alert)
def test_without_an_address_of_the_runbook_the_link_leads_to_grafana_or_names_the_file(
    case: AlertCase, unset: Collection[str], tmp_path: Path
) -> None:
    """The link leads to the alert's panel in Grafana. Grafana's address comes from an external label."""
    known = {name: url for name, url in EXTERNAL_LABELS.items() if name not in unset}
    assert promtool_output(replace(case, external_labels=known), tmp_path) == ""


@pytest.mark.parametrize("alert", sorted({rule["alert"] for rule in ALERTS}))
def test_every_alert_has_a_case_where_it_fires_one_where_it_does_not_and_one_with_texts(alert: str) -> None:
    of_alert = [case for case in CASES if case.alert == alert]
    severities = {rule["labels"]["severity"] for rule in ALERTS if rule["alert"] == alert}
    assert {case.severity for case in of_alert} == {*severities, None}
    assert [case for case in of_alert if case.says]
