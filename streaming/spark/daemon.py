"""Where Spark's Python workers are forked from: `spark.python.daemon.module`.

Spark starts this module once and forks every worker from it. What is imported here is there in each worker already, and
its memory is shared by all of them. Otherwise each of the first batch's four workers would import pandas, pyarrow and
our steps for itself, on the two cores that the batch needs.

Spark puts PySpark and Py4J on the path a second time, as archives. Each task has Python forget what it knows of every
archive and read its directory again: 40 ms of a task that often takes no longer.
"""

from __future__ import annotations

import sys
from zipimport import zipimporter

import py4j
import pyspark
from pyspark.daemon import manager

import streaming.spark.steps  # noqa: F401 - imported to be there


def leave_archives() -> None:
    """Look for modules no more in the archives that PySpark and Py4J were imported from, for nothing else is in them.

    Their own parts are still found there, and archives of the user's stay.
    """
    loaders = (module.__spec__.loader for module in (pyspark, py4j) if module.__spec__ is not None)
    archives = {loader.archive for loader in loaders if isinstance(loader, zipimporter)}
    sys.path[:] = [entry for entry in sys.path if entry not in archives]
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter) and finder.archive in archives:
            del sys.path_importer_cache[path]


if __name__ == "__main__":
    leave_archives()
    manager()  # type: ignore[no-untyped-call]
