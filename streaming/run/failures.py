"""Log the failures of repeated tasks. A repeated reason is logged only once.

1. If a repeated task fails several times for the same reason, the reason is logged only once until a success.
2. An expected failure (disk, tables, brokers) is logged as one line. An unexpected failure has its stack trace.
3. After Spark has ended, every task fails. These failures are not logged, because the end of Spark is logged
   separately.
4. While brokers do not answer, the log has one warning, even if the reasons differ. When the brokers answer again, one
   more line is logged.
"""

from __future__ import annotations

import logging

from deltalake.exceptions import DeltaError
from kafka.errors import KafkaError
from py4j.protocol import Py4JError

from streaming.errors import RemedyError
from streaming.run.retry_state import reason_of
from streaming.spark.causes import is_spark_gone, plain_cause

_log = logging.getLogger(__name__)
_EXPECTED = (DeltaError, OSError, Py4JError, RemedyError)
_NO_ANSWER = "brokers do not answer"


class SparkEndedError(RemedyError):
    """Error: Spark has ended, so all queries have also ended."""

    def __init__(self) -> None:
        super().__init__("Spark ended (killed, or spark.driver_memory is too small): start the monitor again")


class FailureLog:
    """Logs the failures of one repeated task in one thread (rules 1 to 4). `what` is the name of the task."""

    def __init__(self, cluster: str, what: str) -> None:
        self._cluster = cluster
        self._what = what
        self._reported = ""

    def report(self, error: Exception) -> None:
        """Log a failure if its reason differs from the reason of the previous failure."""
        is_from_brokers = isinstance(error, KafkaError)
        reported, self._reported = self._reported, _NO_ANSWER if is_from_brokers else reason_of(error)
        is_quiet = is_spark_gone(error) or reported == self._reported
        if is_from_brokers:
            level = logging.DEBUG if is_quiet else logging.WARNING
            _log.log(level, "%s: brokers do not answer (%s); %s failed, trying again", self._cluster, error, self._what)
            return
        level = logging.DEBUG if is_quiet else logging.ERROR
        trace = None if isinstance(error, _EXPECTED) else error
        cause = plain_cause(error)
        _log.log(level, "%s: %s failed; trying again: %s", self._cluster, self._what, cause, exc_info=trace)

    def reset(self) -> None:
        """Forget the last reason after a success."""
        if self._reported == _NO_ANSWER:
            _log.info("%s: brokers answer again (%s succeeded)", self._cluster, self._what)
        self._reported = ""
