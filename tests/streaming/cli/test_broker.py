"""Test `rebalance-monitor broker` in its own process, as a user starts it."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import psutil
import pytest
from click.testing import CliRunner
from kafka import KafkaAdminClient

from streaming.cli.broker import broker

if TYPE_CHECKING:
    from pathlib import Path

_COMMAND = [sys.executable, "-c", "from streaming.cli.broker import broker; broker()"]


@pytest.mark.slow
@pytest.mark.parametrize("stop_signal", [signal.SIGINT, signal.SIGTERM])
def test_the_command_prints_its_address_and_ends_cleanly_on_a_signal(stop_signal: signal.Signals, tmp_path: Path):
    command = [*_COMMAND, "--folder", str(tmp_path), "--property", "offsets.topic.num.partitions=3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        bootstrap_servers = process.stdout.readline().strip()
        with closing(KafkaAdminClient(bootstrap_servers=bootstrap_servers)) as admin:
            assert len(admin.describe_cluster()["brokers"]) == 1
        children = psutil.Process(process.pid).children()
        process.send_signal(stop_signal)
        assert process.wait(timeout=20) == 0
    assert [child.is_running() for child in children] == [False]
    assert "offsets.topic.num.partitions=3\n" in (tmp_path / "server.properties").read_text()


@pytest.mark.parametrize("given", ["no-equals-sign", "=value"])
def test_a_property_without_name_or_value_is_refused(given: str):
    result = CliRunner().invoke(broker, ["--property", given])
    assert result.exit_code == 2
    assert f"{given!r} is not NAME=VALUE" in result.output


def test_an_unknown_kafka_version_is_refused_with_the_known_versions():
    result = CliRunner().invoke(broker, ["--kafka-version", "3.8.0"])
    assert result.exit_code == 2
    assert "'3.8.0' is not one of '3.7.2', '3.9.2', '4.2.0', '4.3.1'" in result.output


def test_an_error_that_the_user_can_correct_is_one_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    result = CliRunner().invoke(broker)
    assert result.exit_code == 1
    assert result.output.startswith("Error: JAVA_HOME is /nowhere, but /nowhere/bin/java cannot be run")
    assert result.output.count("\n") == 1
