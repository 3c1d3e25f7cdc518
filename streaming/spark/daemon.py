"""The process from which Spark forks its Python workers (`spark.python.daemon.module`).

Spark starts this module once and forks every worker from it. So the workers share the memory of its imports. Otherwise,
each worker of the first batch would import pandas, pyarrow and the steps again.

If `SPARK_HOME` is set, Spark adds PySpark and Py4J to Python's path a second time, as archives. At each task, Python
reads the list of files of every archive again, which takes 40 ms and doubles the time of many tasks. So this module
prevents these reads.
"""

from __future__ import annotations

from zipimport import zipimporter

from pyspark.daemon import manager

import streaming.spark.steps  # noqa: F401 - imported for the workers


def keep_directories_of_archives() -> None:
    """Make `importlib.invalidate_caches` ignore archives, because archives do not change while a worker runs.

    Removing the archives from the path is not sufficient, because imports of PySpark add the archives again.
    """

    def keep_cache(self: zipimporter) -> None:
        """Do nothing, so that the cached list of files of the archive stays valid."""

    zipimporter.invalidate_caches = keep_cache  # type: ignore[method-assign]


if __name__ == "__main__":
    keep_directories_of_archives()
    manager()  # type: ignore[no-untyped-call]
