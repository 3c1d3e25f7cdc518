"""Where Spark's Python workers are forked from: `spark.python.daemon.module`.

Spark starts this module once and forks every worker from it. What is imported here is there in each worker already, and
its memory is shared by all of them. Otherwise each of the first batch's four workers would import pandas, pyarrow and
our steps for itself, on the two cores that the batch needs.

Spark puts PySpark and Py4J on the path a second time, as archives. Each task has Python forget what it knows of every
archive and read its directory again: 40 ms of a task that often takes no longer.
"""

from __future__ import annotations

from zipimport import zipimporter

from pyspark.daemon import manager

import streaming.spark.steps  # noqa: F401 - imported to be there


def keep_directories_of_archives() -> None:
    """Have `importlib.invalidate_caches` pass over archives: none of them changes as long as a worker lives.

    To take them off the path is not enough: every part of PySpark that a task is the first to need brings one back.
    """

    def pass_over(self: zipimporter) -> None:
        """Keep what is known of the archive."""

    zipimporter.invalidate_caches = pass_over  # type: ignore[method-assign]


if __name__ == "__main__":
    keep_directories_of_archives()
    manager()  # type: ignore[no-untyped-call]
