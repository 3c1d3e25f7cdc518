"""Tests of the contents of the wheel and of the installed package."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import streaming

ROOT = Path(__file__).parents[1]
COPY_OF_VERSION = re.compile(r"(?m)(?:rebalance-monitor(?:-[a-z]+)?:|^version: |^appVersion: )(\d+\.\d+\.\d+)")
"""The tag of an image, or a version of the Helm chart."""


def test_the_streaming_that_is_imported_is_ours():
    """`mosaicml-streaming` has a package of the same name. If both are installed, Python imports the last one."""
    assert Path(streaming.__file__).parent == ROOT / "streaming"
    owners = importlib.metadata.packages_distributions()
    assert set(owners.get("streaming", ["kafka-rebalance-monitor"])) == {"kafka-rebalance-monitor"}


def test_every_copy_of_the_version_agrees_with_pyproject():
    """The version is defined in pyproject.toml. Files that Docker, Helm and people read need a copy of it."""
    (version,) = re.findall(r'(?m)^version = "(.*)"$', (ROOT / "pyproject.toml").read_text())
    copies = {
        str(file.relative_to(ROOT)): COPY_OF_VERSION.findall(file.read_text(errors="replace"))
        for file in (ROOT / "deploy").rglob("*")
        if file.is_file()
    }
    copies["CHANGELOG.md"] = re.findall(r"(?m)^## (\S+) — ", (ROOT / "CHANGELOG.md").read_text())[:1]
    assert {file: found for file, found in copies.items() if set(found) - {version}} == {}
    assert {file for file, found in copies.items() if found} >= {
        "CHANGELOG.md",
        "deploy/README.md",
        "deploy/KUBERNETES.md",
        "deploy/compose/compose.yaml",
        "deploy/helm/kafka-rebalance-monitor/Chart.yaml",
        "deploy/image/Dockerfile",
        "deploy/kubernetes/one-node.yaml",
        "deploy/kubernetes/spark-operator.yaml",
    }


@pytest.mark.slow
def test_the_wheel_contains_both_packages_with_their_files_and_nothing_else(tmp_path: Path):
    """The wheel contains the lock of the jars, the broker's logging and the layouts, but no tests and tools."""
    script = ROOT / "deploy" / "image" / "wheel.sh"
    subprocess.run([script, tmp_path], check=True, env={**os.environ, "PYTHON": sys.executable})
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "assignors",
        "streaming",
        f"kafka_rebalance_monitor-{importlib.metadata.version('kafka-rebalance-monitor')}.dist-info",
    }
    assert {"streaming/jars/jars.lock", "streaming/embedded/log4j2.properties", "streaming/py.typed"} <= set(names)
    assert not [name for name in names if "test" in name]
