"""The process from which Spark forks its Python workers (`spark.python.daemon.module`).

Spark starts this module once and forks every worker from it. So each worker already has the modules that are imported
here, and all workers share their memory. Otherwise each of the four workers of the first batch would import pandas,
pyarrow and the steps itself. This would slow down the batch, which runs on the same two cores.

Spark puts PySpark and Py4J on the path a second time, as archives. At each task, Python reads the directory of every
archive again. This takes 40 ms, about as long as many tasks take in total.
"""

from __future__ import annotations

from zipimport import zipimporter

from pyspark.daemon import manager

import streaming.spark.steps  # noqa: F401 - imported for the workers


def keep_directories_of_archives() -> None:
    """Make `importlib.invalidate_caches` skip archives, because archives do not change while a worker lives.

    Removing them from the path is not enough, because imports of further PySpark modules put them back.
    """

    def keep_cache(self: zipimporter) -> None:
        """Keep the cached directory of the archive."""

    zipimporter.invalidate_caches = keep_cache  # type: ignore[method-assign]


if __name__ == "__main__":
    keep_directories_of_archives()
    manager()  # type: ignore[no-untyped-call]
