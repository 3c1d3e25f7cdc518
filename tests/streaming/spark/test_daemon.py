"""Workers are forked from a process that reads the directory of an archive once."""

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
def forget_and_look():  # from Python 3.13 on it is the next look that reads
    importlib.invalidate_caches()
    assert importlib.util.find_spec("nobody_has_this") is None
forget_and_look()
before = len(directories_read)
streaming.spark.daemon.keep_directories_of_archives()
import pyspark.ml.feature
directories_read.clear()
forget_and_look()
after = len(directories_read)
import users_strategies
print(before > 0, after, users_strategies.NAME)
"""


def test_a_task_does_not_read_the_directories_of_archives_again(tmp_path: Path) -> None:
    """Spark calls `importlib.invalidate_caches` in every task: 40 ms with its two archives, nothing without.

    Also after a part of PySpark that nobody needed before; and a user's strategy in an archive is still found.
    """
    assert len(ARCHIVES) == 2
    users = tmp_path / "users.zip"
    with ZipFile(users, "w") as archive:
        archive.writestr("users_strategies.py", "NAME = 'mine'")
    path = json.dumps([*map(str, ARCHIVES), str(users), *filter(None, sys.path)])
    command = [sys.executable, "-c", TWO_TASKS, path]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.stdout.split() == ["True", "0", "mine"], answer.stderr
