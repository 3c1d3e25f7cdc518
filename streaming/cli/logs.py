"""Logs of a running command: one line an event, on standard error, our own only unless asked; and no secret in it."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from pathlib import Path
from types import TracebackType

from streaming.config.load import Settings, load_settings, redactor_of
from streaming.config.redaction import Redactor


class _Known:
    """The secrets that this process knows: standard error belongs to the whole process."""

    redactor = Redactor()


class _WithoutSecrets(logging.Formatter):
    """Takes secrets out of whole lines, tracebacks included: a library's error may name an address with a password."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self._formatter = formatter

    def format(self, record: logging.LogRecord) -> str:
        """The line without them."""
        return redacted(self._formatter.format(record))


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


def redacted(text: str) -> str:
    """A text without the secrets of the settings, to be printed."""
    return _Known.redactor(text)


def settings_of(file: Path | None) -> Settings:
    """Load the settings; none of their secrets is said from now on. Raises ConfigError."""
    settings = load_settings(file)
    keep_secret(redactor_of(settings))
    return settings


def keep_secret(redactor: Redactor) -> None:
    """Take secrets out of all that this process says on standard error from now on: log lines and tracebacks."""
    _Known.redactor = redactor
    for handler in logging.getLogger().handlers:
        if not isinstance(handler.formatter, _WithoutSecrets):
            handler.setFormatter(_WithoutSecrets(handler.formatter or logging.Formatter()))
    sys.excepthook = _say
    threading.excepthook = lambda ended: _say(ended.exc_type, ended.exc_value, ended.exc_traceback)


def _say(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    sys.stderr.write(redacted("".join(traceback.format_exception(kind, error, trace))))
