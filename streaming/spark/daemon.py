"""The process from which Spark forks its Python workers (`spark.python.daemon.module`).

Spark starts this module once and forks every worker from it. So each worker already has the modules that are imported
here. All workers share the memory of these modules. Without this module, each of the four workers of the first batch
would import pandas, pyarrow and the steps again. These imports would slow down the batch, because the batch runs on the
same two cores.

Spark puts PySpark and Py4J on the path a second time, as archives. At each task, Python reads the directory of every
archive again. This reading takes 40 ms. Many tasks take only about 40 ms in total.
"""

from __future__ import annotations

from zipimport import zipimporter

from pyspark.daemon import manager

import streaming.spark.steps  # noqa: F401 - imported for the workers


def keep_directories_of_archives() -> None:
    """Make `importlib.invalidate_caches` ignore archives, because archives do not change while a worker runs.

    It is not enough to remove the archives from the path. The import of a further PySpark module adds the archives to
    the path again.
    """

    def keep_cache(self: zipimporter) -> None:
        """Do nothing, so that the cached directory of the archive stays valid."""

    zipimporter.invalidate_caches = keep_cache  # type: ignore[method-assign]


if __name__ == "__main__":
    keep_directories_of_archives()
    manager()  # type: ignore[no-untyped-call]
