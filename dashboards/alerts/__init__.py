"""The alerts, and the generator of the files for Prometheus and Alertmanager. DESIGN.md explains the policy.

- `definition.py`: the parts of an alert, with the rules for severities.
- `assignments.py`, `rebalances.py`, `progress.py`, `retention.py`, `coordinators.py`, `monitor.py`: the alerts.
- `expressions.py`, `texts.py`, `links.py`: parts of expressions, texts and links that several alerts use.
- `inhibition.py`: the alerts that suppress other alerts.
- `rules.py` creates Prometheus' rules, and `files.py` writes all files.
"""

from dashboards.alerts.links import FIRST_PANEL_NUMBER, PANEL_NUMBERS, panel_number

__all__ = ["FIRST_PANEL_NUMBER", "PANEL_NUMBERS", "panel_number"]
