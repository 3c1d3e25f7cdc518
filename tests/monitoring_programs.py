"""The programs that run our rules, dashboards and pages to people: found, or installed, by deploy/prometheus.sh."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path
from typing import NamedTuple

SCRIPT = Path(__file__).parents[1] / "deploy" / "prometheus.sh"


class MonitoringPrograms(NamedTuple):
    """Paths, in the order the script prints them."""

    prometheus: str
    promtool: str
    alertmanager: str
    amtool: str


@functools.cache
def monitoring_programs() -> MonitoringPrograms:
    """Find them, or install them; fail with the script's one line."""
    found = subprocess.run([SCRIPT], check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return MonitoringPrograms(*found.stdout.splitlines())
