"""Test the settings of the demo's monitor, and the reason that is shown when it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.config.load import load_settings
from streaming.demo.environment import DemoEnvironment, last_log_line


@pytest.mark.parametrize("name", ["plain", 'with "quotes"', "with 'quotes'", "ünïcode"])
def test_the_monitors_settings_are_right_for_any_name_of_the_folder(tmp_path: Path, name: str):
    folder = tmp_path / name
    environment = DemoEnvironment(folder, 12_345)
    (file := tmp_path / "monitor.toml").write_text(environment._settings(), encoding="utf-8")
    settings = load_settings(file)
    assert settings.kafka.bootstrap_servers == environment.bootstrap_servers
    assert settings.metrics.port == 12_345
    assert settings.paths.tables == str(folder / "tables")
    assert settings.paths.checkpoint == str(folder / "checkpoint")


@pytest.mark.parametrize(
    ("log", "says"),
    [
        pytest.param(
            "INFO starting\nError: no java found: apt install it\n\n",
            "no java found: apt install it",
            id="an error of the monitor",
        ),
        pytest.param("Traceback:\n  File\nKeyError: 'x'\n", "KeyError: 'x'", id="an unexpected error"),
        pytest.param("", "the log is empty", id="killed before the first line"),
    ],
)
def test_the_reason_is_the_logs_last_line(tmp_path: Path, log: str, says: str):
    (path := tmp_path / "monitor.log").write_text(log)
    assert last_log_line(path) == says
