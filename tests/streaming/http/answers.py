"""The text of a scrape."""

from __future__ import annotations

import re

from prometheus_client import generate_latest

from streaming.prometheus.exposition import Encoder
from streaming.prometheus.metrics import Exporter

_LINE_OF_PROCESS = re.compile(r"^(# (HELP|TYPE) )?(process|python)_.*\n", re.MULTILINE)


def answer(exporter: Exporter, encoder: Encoder = generate_latest) -> str:
    """Return the text of a scrape, without the standard metrics of the process. Their values change all the time."""
    return _LINE_OF_PROCESS.sub("", whole_answer(exporter, encoder))


def whole_answer(exporter: Exporter, encoder: Encoder = generate_latest) -> str:
    """Return the complete text of a scrape."""
    return b"".join(exporter.exposition(encoder)).decode()
