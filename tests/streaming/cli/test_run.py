"""What `rebalance-monitor run` ends with, for systemd, Kubernetes or whatever else starts it again."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from streaming.cli import main
from streaming.config.environment import ENVIRONMENT_PREFIX
from streaming.embedded.ports import free_port
from streaming.errors import MAY_PASS, STAYS
from streaming.spark.checkpoint import CheckpointError, CheckpointInUseError, CheckpointLock


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """The command takes SIGINT and SIGTERM for itself; a Ctrl-C is the test run's again afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Settings come from the test alone."""
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}PATHS__CHECKPOINT", str(tmp_path / "checkpoint"))
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}METRICS__PORT", "0")


def test_a_wrong_setting_stays_wrong_however_often_it_is_started(tmp_path: Path):
    """A restart loop would hide one clear line below a thousand starts of Python."""
    file = tmp_path / "monitor.toml"
    file.write_text("[kafka]\nbootstrap_servers = 'kafka'\n")
    ended = CliRunner().invoke(main, ["run", "--config", str(file)])
    assert ended.exit_code == STAYS
    assert "kafka.bootstrap_servers: 'kafka' is not host:port" in ended.stderr


def test_a_strategy_that_cannot_be_loaded_stays_so(monkeypatch: pytest.MonkeyPatch):
    """An image without the user's package."""
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}EVALUATION__ASSIGNORS", '["nowhere:Nothing"]')
    assert CliRunner().invoke(main, ["run"]).exit_code == STAYS


def test_a_broker_that_does_not_answer_may_answer_the_next_time(monkeypatch: pytest.MonkeyPatch):
    """Everything starts at once after a power cut."""
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}KAFKA__BOOTSTRAP_SERVERS", f"127.0.0.1:{free_port()}")
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}KAFKA__CONNECT_TIMEOUT_SECONDS", "0.2")
    ended = CliRunner().invoke(main, ["run"])
    assert ended.exit_code == MAY_PASS
    assert "no broker at" in ended.stderr


def test_a_checkpoint_in_use_may_be_free_the_next_time(tmp_path: Path):
    """The monitor before it is still stopping; any other trouble with a checkpoint stays."""
    checkpoint = str(tmp_path / "checkpoint")
    with CheckpointLock(checkpoint), pytest.raises(CheckpointInUseError) as refused, CheckpointLock(checkpoint):
        pass
    assert refused.value.exit_code == MAY_PASS
    assert CheckpointError.exit_code == STAYS
