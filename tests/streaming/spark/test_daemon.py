"""Workers are forked from a process that looks for modules in no archive."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyspark

ARCHIVES = sorted((Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip"))
FROM_ARCHIVES = """
import sys, zipimport
import pyspark, streaming.spark.daemon
assert ".zip/" in pyspark.__file__, pyspark.__file__
def archives():
    return [finder for finder in sys.path_importer_cache.values() if isinstance(finder, zipimport.zipimporter)]
assert archives()
streaming.spark.daemon.leave_archives()
import pyspark.sql.pandas.serializers
print(len(archives()), sum(entry in archives_on_path for entry in sys.path))
"""


def test_no_task_has_to_read_the_directory_of_an_archive_again() -> None:
    """Spark calls `importlib.invalidate_caches` in every task: 40 ms with its two archives, nothing without."""
    assert len(ARCHIVES) == 2
    archives = list(map(str, ARCHIVES))
    path = [*archives, *filter(None, sys.path)]
    program = f"import sys; sys.path[:0] = {path!r}; archives_on_path = {archives!r}\n{FROM_ARCHIVES}"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert answer.stdout.split() == ["0", "0"], answer.stderr
