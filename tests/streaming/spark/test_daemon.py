"""Tests that the process from which Spark forks Python workers reads the directory of each archive only once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pyspark

ARCHIVES = sorted((Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip"))
TWO_TASKS = """
import importlib.util, json, sys, zipimport
sys.path[:0] = json.loads(sys.argv[1])
import pyspark, streaming.spark.daemon
assert ".zip/" in pyspark.__file__, pyspark.__file__
read_directory, directories_read = zipimport._read_directory, []
zipimport._read_directory = lambda archive: directories_read.append(archive) or read_directory(archive)
def clear_cache_and_search():  # since Python 3.13 the next search reads the directory
    importlib.invalidate_caches()
    assert importlib.util.find_spec("missing_module") is None
clear_cache_and_search()
before = len(directories_read)
streaming.spark.daemon.keep_directories_of_archives()
import pyspark.ml.feature
directories_read.clear()
clear_cache_and_search()
after = len(directories_read)
import users_strategies
print(before > 0, after, users_strategies.NAME)
"""


def test_a_task_does_not_read_the_directories_of_archives_again(tmp_path: Path) -> None:
    """Spark calls `importlib.invalidate_caches` in every task. With its two archives this costs 40 ms.

    The test also searches for a missing module, and for a user's strategy in an archive.
    """
    assert len(ARCHIVES) == 2
    users = tmp_path / "users.zip"
    with ZipFile(users, "w") as archive:
        archive.writestr("users_strategies.py", "NAME = 'mine'")
    path = json.dumps([*map(str, ARCHIVES), str(users), *filter(None, sys.path)])
    command = [sys.executable, "-c", TWO_TASKS, path]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.stdout.split() == ["True", "0", "mine"], completed.stderr
