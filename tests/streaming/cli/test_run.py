"""Test the exit codes of `rebalance-monitor run`, which decide whether systemd or Kubernetes restarts it."""

from __future__ import annotations

import signal
import tempfile
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
    """Restore the handlers of SIGINT and SIGTERM, which the command replaces."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def settings_of_the_test_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Set a checkpoint and a port for the test."""
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}PATHS__CHECKPOINT", str(tmp_path / "checkpoint"))
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}METRICS__PORT", "0")


def test_a_wrong_setting_ends_with_the_code_for_permanent_errors(tmp_path: Path):
    """A restart loop would hide the line that describes the error."""
    file = tmp_path / "monitor.toml"
    file.write_text("[kafka]\nbootstrap_servers = 'kafka'\n")
    ended = CliRunner().invoke(main, ["run", "--config", str(file)])
    assert ended.exit_code == STAYS
    assert "kafka.bootstrap_servers: address 1 is not host:port" in ended.stderr


@pytest.mark.parametrize(("command", "exit_code"), [(("run",), STAYS), (("rebuild",), STAYS), (("broker",), 1)])
def test_no_folder_for_temporary_files_is_a_permanent_error(
    command: tuple[str, ...], exit_code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """With full disks, or with a read-only root file system and no mount at /tmp, this was a traceback."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "missing")])
    ended = CliRunner().invoke(main, command)
    assert ended.exit_code == exit_code
    assert ended.stderr.startswith("Error: temporary files cannot be created (No usable temporary directory found in")
    assert len(ended.stderr.splitlines()) == 1
    assert "set TMPDIR to a writable folder" in ended.stderr


def test_a_strategy_that_cannot_be_loaded_is_a_permanent_error(monkeypatch: pytest.MonkeyPatch):
    """For example, the image does not contain the user's package."""
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}EVALUATION__ASSIGNORS", '["nowhere:Nothing"]')
    assert CliRunner().invoke(main, ["run"]).exit_code == STAYS


@pytest.mark.parametrize("command", [("run",), ("config", "check")])
def test_an_unusable_file_of_the_port_is_a_permanent_error(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """`run` ended with code 1, so systemd restarted it for ever. `config check` did not find the error."""
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}METRICS__BASIC_AUTH_USERS_FILE", str(tmp_path / "users"))
    ended = CliRunner().invoke(main, command)
    assert ended.exit_code == (STAYS if command == ("run",) else 1)
    assert f"{tmp_path}/users cannot be read" in ended.stderr


def test_a_broker_that_does_not_answer_is_a_temporary_error(monkeypatch: pytest.MonkeyPatch):
    """After a power failure the broker and the monitor start at the same time."""
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}KAFKA__BOOTSTRAP_SERVERS", f"127.0.0.1:{free_port()}")
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}KAFKA__CONNECT_TIMEOUT_SECONDS", "0.2")
    ended = CliRunner().invoke(main, ["run"])
    assert ended.exit_code == MAY_PASS
    assert "no broker at" in ended.stderr


def test_a_checkpoint_in_use_is_a_temporary_error(tmp_path: Path):
    """The previous monitor may still be stopping. All other errors of a checkpoint are permanent."""
    checkpoint = str(tmp_path / "checkpoint")
    with CheckpointLock(checkpoint), pytest.raises(CheckpointInUseError) as refused, CheckpointLock(checkpoint):
        pass
    assert refused.value.exit_code == MAY_PASS
    assert CheckpointError.exit_code == STAYS
