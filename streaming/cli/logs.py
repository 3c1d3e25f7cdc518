"""Logs of a running command: one line an event, on standard error, our own only unless asked."""

from __future__ import annotations

import logging


def start_logging(level: str) -> None:
    """Log our own packages at `level`; the libraries below us only what is wrong."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("streaming").setLevel(level)
    for chatty in ("kafka", "py4j"):
        logging.getLogger(chatty).setLevel(logging.CRITICAL)
