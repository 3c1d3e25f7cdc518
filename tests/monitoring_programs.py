"""Finds or installs Prometheus and Alertmanager with deploy/prometheus.sh, for tests of rules and alerts."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path
from typing import NamedTuple

SCRIPT = Path(__file__).parents[1] / "deploy" / "prometheus.sh"


class MonitoringPrograms(NamedTuple):
    """The paths of the programs, in the order in which the script prints them."""

    prometheus: str
    promtool: str
    alertmanager: str
    amtool: str


@functools.cache
def monitoring_programs() -> MonitoringPrograms:
    """Find or install the programs. Fails with the error message of the script."""
    found = subprocess.run([SCRIPT], check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return MonitoringPrograms(*found.stdout.splitlines())
