"""Test the alerts if Prometheus scrapes two monitors of one cluster (deploy/README.md).

Alertmanager identifies an alert by its labels. So two alerts with the same labels are one alert, and two alerts with
different labels are two notifications. In every case, each severity must fire exactly once.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.dashboards.healthy_cases import HEALTHY
from tests.dashboards.rules import INSTANCE, READY, AlertCase, Series, of_cluster, promtool_output
from tests.dashboards.test_alerts import CASES, title

NOT_READY = {
    READY: "0x6000",
    **of_cluster("offsets_topic_lag", "900000-1000x6000", partition="0", instance=INSTANCE),
    **of_cluster("offsets_topic_blocked", "0x6000", partition="0", instance=INSTANCE),
    **of_cluster("records_read_total", "0+60000x6000", kind="offset_commit", instance=INSTANCE),
    **of_cluster("last_batch_timestamp_seconds", "0+60x6000", instance=INSTANCE),
}
"""A monitor that reads the log for the first time shows only metrics of its own."""


def of_other(series: str) -> str:
    """Return the same series of the other monitor.

    >>> of_other('rebalance_monitor_ready{instance="monitor:9560"}')
    'rebalance_monitor_ready{instance="other-monitor:9560"}'
    """
    return re.sub(r'\binstance="', 'instance="other-', series)


def of_both(series: Series) -> Series:
    """Return the series of two monitors with the same values."""
    return {**series, **{of_other(name): values for name, values in series.items()}}


def of_one_and_a_new_one(series: Series) -> Series:
    """Return the series of two monitors. The other one is not ready: it reads the log for more than an hour."""
    return {**series, **{of_other(name): values for name, values in NOT_READY.items()}}


FIRING = {(case.alert, case.fires): case for case in CASES if case.fires}


@pytest.mark.parametrize("case", FIRING.values(), ids=title)
def test_an_alert_of_two_monitors_fires_once(case: AlertCase, tmp_path: Path) -> None:
    """Both monitors are ready and have the same values."""
    assert promtool_output(replace(case, says=None), tmp_path, of_both) == ""


@pytest.mark.parametrize("case", HEALTHY, ids=title)
def test_no_alert_fires_while_one_of_two_monitors_reads_the_log(case: AlertCase, tmp_path: Path) -> None:
    """The other monitor is ready, so all values are new."""
    assert promtool_output(case, tmp_path, of_one_and_a_new_one) == ""


@pytest.mark.parametrize("case", [case for case in FIRING.values() if case.alert.startswith("Kafka")], ids=title)
def test_an_alert_about_a_group_fires_while_one_of_two_monitors_reads_the_log(case: AlertCase, tmp_path: Path) -> None:
    assert promtool_output(replace(case, says=None), tmp_path, of_one_and_a_new_one) == ""
