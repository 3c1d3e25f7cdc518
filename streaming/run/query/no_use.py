"""Where starting a query again is no use.

If a query failed and the checkpoint or a table is damaged, the run ends: no try will heal that. If the checkpoint is
gone, the run ends so that the next one makes a new checkpoint.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from streaming.delta.on_disk import DeltaTables
from streaming.delta.table_files import refuse_damaged_tables
from streaming.errors import RemedyError
from streaming.run.failures import SparkEndedError
from streaming.run.query.prepare import check_age
from streaming.spark.causes import plain_cause
from streaming.spark.checkpoint import CheckpointDamagedError, CheckpointError, find_damaged_file, read_identity
from streaming.spark.files import Files
from streaming.spark.session import is_running


class CheckpointRemovedError(RemedyError):
    """The checkpoint was removed while the monitor ran. The next start makes a new one."""


def check_what_a_run_stands_on(session: SparkSession, files: Files, tables: DeltaTables) -> None:
    """Raise a RemedyError where starting the query again is no use, if Spark, checkpoint or tables are gone."""
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
