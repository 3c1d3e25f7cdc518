"""Test the file with secrets: it is private, complete, and deleted afterwards."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.security.secrets_file import java_properties, secrets_file


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_only_the_owner_can_read_the_file_and_it_is_deleted_afterwards(tmp_path: Path) -> None:
    with secrets_file({"sasl.jaas.config": "hunter2"}) as file:
        assert file is not None
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert [stat.S_IMODE(folder.stat().st_mode) for folder in tmp_path.iterdir()] == [0o700]
        assert "hunter2" not in file.read_text()
    assert list(tmp_path.iterdir()) == []


def test_without_secrets_there_is_no_file(tmp_path: Path) -> None:
    with secrets_file({}) as file:
        assert file is None
        assert list(tmp_path.iterdir()) == []


@given(st.text())
def test_java_reads_every_character_as_it_was(value: str) -> None:
    r"""`Properties.load` reads \uXXXX as one UTF-16 unit. The line has no other characters with a special meaning."""
    name, _, written = java_properties({"a.b": value}).removesuffix("\n").partition("=")
    assert name == "a.b"
    assert bytes.fromhex(written.replace("\\u", "")).decode("utf-16-be") == value
