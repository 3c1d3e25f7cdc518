"""What went wrong while the monitor runs: one line for each reason, and an end where trying again is no use.

1. What is tried again and again is reported once for each reason, until it went well in between.
2. A failure of disk, tables or brokers is one line. A failure nobody thought of comes with its trace.
3. That Spark is gone is reported once, by the one who ends the run.
4. If a query failed and the checkpoint or a table is damaged, the run ends: no try will heal that. If the checkpoint is
   gone, the run ends so that the next one makes a new checkpoint.
"""

from __future__ import annotations

import logging

from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from streaming.delta.on_disk import DeltaTables
from streaming.delta.table_files import refuse_damaged_tables
from streaming.errors import RemedyError
from streaming.run.query.prepare import check_age
from streaming.run.tries import reason_of
from streaming.spark.causes import is_spark_gone, plain_cause
from streaming.spark.checkpoint import CheckpointDamagedError, CheckpointError, find_damaged_file, read_identity
from streaming.spark.files import Files
from streaming.spark.session import is_running

_log = logging.getLogger(__name__)
_EXPECTED = (DeltaError, OSError, Py4JError, RemedyError)


class SparkEndedError(RemedyError):
    """Spark is gone, and all queries with it."""

    def __init__(self) -> None:
        super().__init__("Spark ended: was it killed, or is spark.driver_memory too small? Start the monitor again")


class CheckpointRemovedError(RemedyError):
    """The checkpoint was removed while the monitor ran. The next start makes a new one."""


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


def check_what_a_run_stands_on(session: SparkSession, files: Files, tables: DeltaTables) -> None:
    """Raise a RemedyError where starting the query again is no use, by rules 3 and 4."""
    if not is_running(session):
        raise SparkEndedError
    uri = files.uri("").rstrip("/")
    try:
        if damage := find_damaged_file(uri):
            raise CheckpointDamagedError(uri, damage)
        if read_identity(files) is None:
            raise CheckpointRemovedError(f"checkpoint {uri} was removed: the next start makes a new one")
        check_age(files, tables.last_batch())
    except OSError as error:
        raise CheckpointError(f"checkpoint {uri} cannot be read: {plain_cause(error)}") from error
    refuse_damaged_tables(tables.root)
