"""Where Spark's Python workers are forked from: `spark.python.daemon.module`.

Spark starts this module once and forks every worker from it. What is imported here is there in each worker already, and
its memory is shared by all of them. Otherwise each of the first batch's four workers would import pandas, pyarrow and
our steps for itself, on the two cores that the batch needs.
"""

from __future__ import annotations

from pyspark.daemon import manager

import streaming.spark.steps  # noqa: F401 - imported to be there

if __name__ == "__main__":
    manager()  # type: ignore[no-untyped-call]
