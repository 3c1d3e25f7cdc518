"""Tests that no child process inherits a setting, because a setting can contain a secret."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from rich.console import Console

import streaming.embedded.broker
import streaming.spark.launch.jvm
from assignors import AssignorFailedError
from streaming.cli.jars import _create_archives
from streaming.config.settings import SparkSettings
from streaming.custom.guarded_assignor import GuardedAssignor
from streaming.demo.environment import DemoEnvironment
from streaming.demo.load import DemoLoad
from streaming.embedded import EmbeddedBroker
from streaming.errors import RemedyError
from streaming.jars.ivy import fetch
from streaming.java import find_java
from streaming.spark.launch.jvm import spark_launch

SECRET = "Zq7hunter2"  # noqa: S105 - only for tests
REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("assignors", "dashboards", "deploy", "streaming")
STARTS = {f"subprocess.{name}" for name in ("Popen", "call", "check_call", "check_output", "run")}

RECORDER = """#!/bin/sh
{ echo "command: $*"; env; } >> '%s'
echo 'openjdk version "17.0.1"' >&2
test "$1" = -version
"""


def run_java_version(_: Path) -> None:
    find_java()


def download_jars(folder: Path) -> None:
    fetch([], folder / "jars", folder / "ivy")


def format_storage(folder: Path) -> None:
    EmbeddedBroker(folder / "broker").start()


def run_broker(folder: Path) -> None:
    properties = folder / "broker" / "topics" / "meta.properties"
    properties.parent.mkdir(parents=True)
    properties.touch()
    EmbeddedBroker(folder / "broker").start()


def run_spark(_: Path) -> None:
    with spark_launch(SparkSettings()) as launch:
        launch.connect()


def run_demo_clients(folder: Path) -> None:
    DemoLoad("127.0.0.1:1", logs=folder / "logs")._run("producer").wait()


def run_demo_monitor(folder: Path) -> None:
    (folder / "logs").mkdir()
    DemoEnvironment(folder, 1)._start_monitor().wait()


def create_class_archives(_: Path) -> None:
    _create_archives(Console(quiet=True))


def run_strategy(_: Path) -> None:
    with closing(GuardedAssignor("assignors.range.range:RangeAssignor")) as guarded, suppress(AssignorFailedError):
        assert guarded.name == "range"


JAVA = (run_java_version, download_jars, format_storage, run_broker, run_spark)
PYTHON = (run_demo_clients, run_demo_monitor, create_class_archives, run_strategy)


@pytest.mark.parametrize("start", [*JAVA, *PYTHON], ids=lambda start: start.__name__)
def test_no_child_process_gets_a_setting(
    start: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's storage tool got all variables of `rebalance-monitor broker` and `demo`."""
    record = tmp_path / "record"
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(RECORDER % record)
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if start in PYTHON:
        monkeypatch.setattr(sys, "executable", str(java))
    for module in (streaming.embedded.broker, streaming.spark.launch.jvm):
        monkeypatch.setattr(module, "resolve", lambda _: [])
    security = {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "me", "password": SECRET}
    monkeypatch.setenv("REBALANCE_MONITOR_KAFKA", json.dumps({"security": security}))
    monkeypatch.setenv("rebalance_monitor_kafka__security__password", SECRET)
    monkeypatch.setenv("OF_THE_USER", "stays")
    with suppress(RemedyError):
        start(tmp_path)
    of_children = record.read_text().split("command: ")[1:]
    assert len(of_children) == (2 if start in JAVA[1:] else 1), "Java is started for its version and for its work"
    for text in of_children:
        assert SECRET not in text
        assert "rebalance_monitor_" not in text.lower().replace("rebalance_monitor_cache_dir", "")
        assert "OF_THE_USER=stays" in text


def test_every_start_of_a_process_names_its_environment() -> None:
    """Without `env`, a child process inherits all variables. The test above covers only the children that exist now."""
    files = [file for package in PACKAGES for file in (REPOSITORY / package).rglob("*.py")]
    calls = [
        (file, node)
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in STARTS
    ]
    assert len(calls) >= 6
    for file, call in calls:
        assert "env" in {keyword.arg for keyword in call.keywords}, f"{file}, line {call.lineno}"
