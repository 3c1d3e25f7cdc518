"""Writes `dashboards/METRICS.md` from the definitions of the metrics: `python -m tests.metrics_reference`."""

from __future__ import annotations

from pathlib import Path

from streaming.signals.reference import metrics_reference

METRICS = Path(__file__).parents[1] / "dashboards" / "METRICS.md"


if __name__ == "__main__":
    METRICS.write_text(metrics_reference())
