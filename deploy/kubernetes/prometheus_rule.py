"""`python deploy/kubernetes/prometheus_rule.py`: write monitoring/prometheus-rule.yaml from dashboards/rules/*.yaml.

The Prometheus operator wants rules inside a PrometheusRule; kustomize cannot put a file there. A test compares the two.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_RULES = Path(__file__).parents[2] / "dashboards" / "rules"
_MANIFEST = Path(__file__).parent / "monitoring" / "prometheus-rule.yaml"
_HEADER = "# Written by `python deploy/kubernetes/prometheus_rule.py` from dashboards/rules; not by hand.\n"


def prometheus_rule(rules: Path) -> str:
    """Return the manifest's text: all groups of all rule files of a folder, files in the order of their names."""
    groups: list[Any] = []
    for file in sorted(rules.glob("*.yaml")):
        groups.extend(yaml.safe_load(file.read_text())["groups"])
    manifest = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "rebalance-monitor", "labels": {"app.kubernetes.io/name": "rebalance-monitor"}},
        "spec": {"groups": groups},
    }
    return _HEADER + yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True, width=110)


if __name__ == "__main__":
    _MANIFEST.write_text(prometheus_rule(_RULES))
