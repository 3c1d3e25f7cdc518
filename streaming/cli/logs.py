"""Logs of a running command: one line an event, on standard error, our own only unless asked."""

from __future__ import annotations

import logging
from pathlib import Path


def start_logging(level: str) -> None:
    """Log our own packages at `level`; the libraries below us only what is wrong."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("streaming").setLevel(level)
    for chatty in ("kafka", "py4j"):
        logging.getLogger(chatty).setLevel(logging.CRITICAL)
    for handler in logging.getLogger().handlers:
        handler.addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Py4J logs some of its failures as the root logger, each with a page of traces. All of them reach us as errors."""
    return record.name != "root" or "py4j" not in Path(record.pathname).parts
