"""`python -m dashboards` writes dashboards/grafana/*.json and all files of the alerts (`alerts/files.py`).

Tests compare the files with the generator's output.
"""

from __future__ import annotations

from pathlib import Path

from dashboards import fleet, group, monitor, runbook, topic
from dashboards.alerts.files import ROOT, alert_files
from dashboards.boards import as_json_text

FOLDER = Path(__file__).parent / "grafana"


def generate_files() -> dict[str, str]:
    """Map the name of each dashboard file to its content."""
    dashboards = {
        "fleet": fleet.dashboard(),
        "group": group.dashboard(),
        "topic": topic.dashboard(),
        "monitor": monitor.dashboard(),
        "runbook": runbook.runbook(runbook.RUNBOOK.read_text()),
    }
    return {f"{name}.json": as_json_text(dashboard) for name, dashboard in dashboards.items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in generate_files().items():
        (FOLDER / name).write_text(text)
    for path, text in alert_files():
        (ROOT / path).write_text(text)
