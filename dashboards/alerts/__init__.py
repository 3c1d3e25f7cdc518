"""The alerts, and the generator of the files for Prometheus and Alertmanager. DESIGN.md explains the policy.

- `definition.py` defines the parts of an alert and the rules for severities.
- `assignments.py`, `rebalances.py`, `progress.py`, `retention.py`, `coordinators.py` and `monitor.py` define the
  alerts.
- `expressions.py`, `texts.py` and `links.py` create expressions, texts and links.
- `inhibition.py` lists the alerts that suppress other alerts.
- `rules.py` creates Prometheus' rules, and `files.py` writes all files.

The package may import `streaming.signals`, but no dashboard.
"""
