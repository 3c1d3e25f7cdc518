"""Test the steps of the image build in a clean folder, and that the built monitor starts without any download."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from streaming.embedded import EmbeddedBroker
from tests.conftest import C1_ONLY
from tests.end_to_end.conftest import Group, create_topics
from tests.end_to_end.monitor_process import MonitorProcess, until

pytestmark = pytest.mark.slow

BUILD = Path(__file__).parents[2] / "deploy" / "image" / "build.sh"
NOWHERE = "127.0.0.1:9"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build the image's files below /opt. They are 1 GB, so they are deleted after the tests."""
    prefix = tmp_path_factory.mktemp("image") / "rebalance-monitor"
    environment = {**os.environ, "JDK_JAVA_OPTIONS": C1_ONLY}  # the class archive needs two JVMs
    completed = subprocess.run([BUILD, prefix], capture_output=True, text=True, check=False, env=environment)
    assert completed.returncode == 0, completed.stderr[-3000:]
    yield prefix
    shutil.rmtree(prefix)


def test_the_built_monitor_runs_without_access_to_a_registry(
    built: Path, broker: EmbeddedBroker, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
):
    """Every proxy is unreachable, HOME is empty, and the checkout is not on the path. Only the built files are used."""
    before = _files(built)
    host, _, port = NOWHERE.partition(":")
    for protocol in ("http", "https"):
        monkeypatch.setenv(f"{protocol}_proxy", f"http://{NOWHERE}")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Dhttps.proxyHost={host} -Dhttps.proxyPort={port}")
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("REBALANCE_MONITOR_CACHE_DIR", str(built / "cache"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    create_topics(broker, {name: 2})
    group = Group(broker.bootstrap_servers, name)
    group.join([name])
    program = str(built / "venv" / "bin" / "rebalance-monitor")
    monitor = MonitorProcess(broker.bootstrap_servers, folder, command=[program, "run"])
    monitor.start().wait_until_ready()
    (archive,) = built.glob("cache/class-archives/*/*.jsa")
    (jvm,) = (child for child in psutil.Process(monitor.process.pid).children() if "java" in child.name())
    assert f"-XX:SharedArchiveFile={archive}" in jvm.cmdline()
    until("the group", lambda: monitor.value("rebalance_monitor_group_members", group=name) == 1)
    group.leave_all()
    assert monitor.stop() == 0
    assert _files(built) == before


@pytest.mark.parametrize("tool", ["pip", "setuptools"])
def test_the_image_has_no_tool_to_install_packages(built: Path, tool: str):
    """A tool that is absent needs no security fix and does not help an attacker."""
    (packages,) = built.glob("venv/lib/python3.*/site-packages")
    assert (packages / "streaming").is_dir()
    assert not (packages / tool).exists()


def test_spark_finds_its_jars_in_the_folder_of_the_manifest(built: Path):
    """The manifest puts `/opt/rebalance-monitor/jars/*` on the class path of driver and executors."""
    jars = {path.name for path in (built / "jars").glob("*.jar")}
    assert {name.partition("_")[0] for name in jars} >= {"delta-spark", "spark-sql-kafka-0-10"}


def _files(folder: Path) -> set[tuple[str, int]]:
    return {(str(path), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}
