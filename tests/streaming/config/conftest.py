"""Fixtures for settings: a file for each test, and no settings from the environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streaming.config.environment import ENVIRONMENT_PREFIX


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().startswith(ENVIRONMENT_PREFIX):
            monkeypatch.delenv(name)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "monitor.toml"
