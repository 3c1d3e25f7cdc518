"""The text of a scrape."""

from __future__ import annotations

from prometheus_client import generate_latest

from streaming.prometheus.exposition import Encoder
from streaming.prometheus.metrics import Exporter


def answer(exporter: Exporter, encoder: Encoder = generate_latest) -> str:
    """Return the complete text of a scrape."""
    return b"".join(exporter.exposition(encoder)).decode()
