"""Tests of the contents of the wheel and of the installed package."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import streaming

ROOT = Path(__file__).parents[1]


def test_the_streaming_that_is_imported_is_ours():
    """`mosaicml-streaming` has a package of the same name. In one environment, the last installed one is used."""
    assert Path(streaming.__file__).parent == ROOT / "streaming"
    owners = importlib.metadata.packages_distributions()
    assert set(owners.get("streaming", ["kafka-rebalance-monitor"])) == {"kafka-rebalance-monitor"}


@pytest.mark.slow
def test_the_wheel_contains_both_packages_with_their_files_and_nothing_else(tmp_path: Path):
    """The wheel contains the lock of the jars, the broker's logging and the layouts, but no tests and tools.

    It is built from a copy, because setuptools leaves a folder `build/` and packs files that it finds there.
    """
    for folder in ("assignors", "streaming"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, tmp_path)
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path / "dist"), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "assignors",
        "streaming",
        f"kafka_rebalance_monitor-{importlib.metadata.version('kafka-rebalance-monitor')}.dist-info",
    }
    assert {"streaming/jars/jars.lock", "streaming/embedded/log4j2.properties", "streaming/py.typed"} <= set(names)
    assert not [name for name in names if "test" in name]
