"""Logging of a running command: one line per event on standard error, without secrets."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from pathlib import Path
from types import TracebackType

from streaming.config.load import Settings, create_redactor, load_settings
from streaming.config.redactor import Redactor


class _ProcessRedactor:
    """The redactor of this process. All threads write to the same standard error, so they share one redactor."""

    redactor = Redactor()


class _RedactingFormatter(logging.Formatter):
    """Formatter that removes secrets from lines and tracebacks, because a library's error can contain a password."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self._formatter = formatter

    def format(self, record: logging.LogRecord) -> str:
        """Return the formatted record without secrets."""
        return redact(self._formatter.format(record))


def start_logging(level: str) -> None:
    """Log our packages at `level`, kafka and py4j at CRITICAL, and all other libraries at WARNING."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("streaming").setLevel(level.upper())
    for library in ("kafka", "py4j"):
        logging.getLogger(library).setLevel(logging.CRITICAL)
    for handler in logging.getLogger().handlers:
        handler.addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Drop py4j's records.

    py4j logs each failure with a long traceback, and also raises the failure as an exception. So its records are not
    needed.
    """
    return record.name != "root" or "py4j" not in Path(record.pathname).parts


def redact(text: str) -> str:
    """Return a text without the secrets of the settings."""
    return _ProcessRedactor.redactor(text)


def load_settings_and_redact(file: Path | None) -> Settings:
    """Load the settings, and remove their secrets from all later output on standard error. Raises ConfigError."""
    settings = load_settings(file)
    redact_standard_error(create_redactor(settings))
    return settings


def redact_standard_error(redactor: Redactor) -> None:
    """Remove secrets from all later log lines and tracebacks on standard error."""
    _ProcessRedactor.redactor = redactor
    for handler in logging.getLogger().handlers:
        if not isinstance(handler.formatter, _RedactingFormatter):
            handler.setFormatter(_RedactingFormatter(handler.formatter or logging.Formatter()))
    sys.excepthook = _write_exception
    threading.excepthook = lambda ended: _write_exception(ended.exc_type, ended.exc_value, ended.exc_traceback)


def _write_exception(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    sys.stderr.write(redact("".join(traceback.format_exception(kind, error, trace))))
