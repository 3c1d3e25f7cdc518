"""All alerts, in the order of the rule files."""

from __future__ import annotations

from typing import Final

from dashboards.alerts.assignments import ASSIGNMENTS
from dashboards.alerts.coordinators import COORDINATORS
from dashboards.alerts.definition import Alert, AlertFile
from dashboards.alerts.monitor import MONITOR_ITSELF
from dashboards.alerts.progress import PROGRESS
from dashboards.alerts.rebalances import REBALANCES
from dashboards.alerts.retention import RETENTION

ALERT_FILES: Final[tuple[AlertFile, ...]] = (ASSIGNMENTS, REBALANCES, PROGRESS, RETENTION, COORDINATORS, MONITOR_ITSELF)
ALERTS: Final[tuple[Alert, ...]] = tuple(alert for file in ALERT_FILES for alert in file.alerts)
