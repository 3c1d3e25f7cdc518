"""`python -m dashboards`: write dashboards/grafana/*.json. A test compares them."""

from __future__ import annotations

from pathlib import Path

from dashboards import alerts, fleet, group, monitor
from dashboards.boards import written

FOLDER = Path(__file__).parent / "grafana"
RUNBOOK = Path(__file__).parent / "RUNBOOK.md"


def texts() -> dict[str, str]:
    """Every dashboard by the name of its file."""
    made = {
        "fleet": fleet.dashboard(),
        "group": group.dashboard(),
        "monitor": monitor.dashboard(),
        "runbook": alerts.runbook(RUNBOOK.read_text()),
    }
    return {f"{name}.json": written(dashboard) for name, dashboard in made.items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts().items():
        (FOLDER / name).write_text(text)
