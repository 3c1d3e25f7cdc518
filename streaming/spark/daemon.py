"""Where Spark's Python workers are forked from: `spark.python.daemon.module`.

Spark starts this module once and forks every worker from it. What is imported here is there in each worker already, and
its memory is shared by all of them. Otherwise each of the first batch's four workers would import pandas, pyarrow and
our steps for itself, on the two cores that the batch needs.

Spark puts PySpark and Py4J on the path a second time, as archives. Each task has Python forget what it knows of every
archive and read its directory again: 30 ms of a task that often takes no longer.
"""

from __future__ import annotations

import sys
from zipimport import zipimporter

from pyspark.daemon import manager

import streaming.spark.steps  # noqa: F401 - imported to be there


def leave_archives() -> None:
    """Look for modules in no archive any more; what was imported from one stays."""
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]
            sys.path[:] = [entry for entry in sys.path if entry != path]


if __name__ == "__main__":
    leave_archives()
    manager()  # type: ignore[no-untyped-call]
