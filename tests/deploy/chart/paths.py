"""The folders of the chart and of the plain manifests."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
CHART: Final = ROOT / "deploy" / "helm" / "kafka-rebalance-monitor"
MANIFESTS: Final = ROOT / "deploy" / "kubernetes"
