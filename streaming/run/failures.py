"""What went wrong while the monitor runs: one line for each reason.

1. What is tried again and again is reported once for each reason, until it went well in between.
2. A failure of disk, tables or brokers is one line. A failure nobody thought of comes with its trace.
3. That Spark is gone is reported once, by the one who ends the run.
"""

from __future__ import annotations

import logging

from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError

from streaming.errors import RemedyError
from streaming.run.retry_state import reason_of
from streaming.spark.causes import is_spark_gone, plain_cause

_log = logging.getLogger(__name__)
_EXPECTED = (DeltaError, OSError, Py4JError, RemedyError)


class SparkEndedError(RemedyError):
    """Spark is gone, and all queries with it."""

    def __init__(self) -> None:
        super().__init__("Spark ended: was it killed, or is spark.driver_memory too small? Start the monitor again")


class Failures:
    """One thread's, for one thing that it does again and again: rules 1 to 3."""

    def __init__(self, cluster: str, what: str) -> None:
        self._cluster = cluster
        self._what = what
        self._reported = ""

    def take(self, error: Exception) -> None:
        """Report it, unless it was the last that was reported."""
        reported, self._reported = self._reported, reason_of(error)
        is_quiet = is_spark_gone(error) or reported == self._reported
        level = logging.DEBUG if is_quiet else logging.ERROR
        trace = None if isinstance(error, _EXPECTED) else error
        cause = plain_cause(error)
        _log.log(level, "%s: %s failed; trying again: %s", self._cluster, self._what, cause, exc_info=trace)

    def take_success(self) -> None:
        """It went well: what fails from now on is new."""
        self._reported = ""
