"""Workers are forked from a process that looks for modules in none of Spark's archives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pyspark

ARCHIVES = sorted((Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip"))
LEAVE_THEM = """
import importlib, json, sys, zipimport
path, archives = json.loads(sys.argv[1])
sys.path[:0] = path
import pyspark, streaming.spark.daemon
assert ".zip/" in pyspark.__file__, pyspark.__file__
def searched():
    finders = sys.path_importer_cache.values()
    return sum(isinstance(finder, zipimport.zipimporter) and finder.archive in archives for finder in finders)
before = searched()
streaming.spark.daemon.leave_archives()
after = searched(), sum(entry in archives for entry in sys.path)
import users_strategies, pyspark.ml.feature
print(before > 0, *after, users_strategies.NAME)
"""


def test_no_task_has_to_read_the_directory_of_sparks_archives_again(tmp_path: Path) -> None:
    """Spark calls `importlib.invalidate_caches` in every task: 40 ms with its two archives, nothing without.

    A user's strategy may be in an archive, too, and is still found; so is what of PySpark nobody needed before.
    """
    assert len(ARCHIVES) == 2
    users = tmp_path / "users.zip"
    with ZipFile(users, "w") as archive:
        archive.writestr("users_strategies.py", "NAME = 'mine'")
    archives = list(map(str, ARCHIVES))
    given = json.dumps([[*archives, str(users), *filter(None, sys.path)], archives])
    command = [sys.executable, "-c", LEAVE_THEM, given]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.stdout.split() == ["True", "0", "0", "mine"], answer.stderr
