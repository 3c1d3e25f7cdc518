"""Test that `make setup` prints what is missing and the remedy in one line, before it downloads anything."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]


@pytest.fixture
def fresh_tree(tmp_path: Path) -> Path:
    """Copy the files that the setup reads, as in a new checkout."""
    for folder in ("deploy", "streaming"):
        shutil.copytree(_ROOT / folder, tmp_path / folder)
    for file in ("pyproject.toml", "requirements-dev.lock"):
        shutil.copy(_ROOT / file, tmp_path / file)
    return tmp_path


def test_without_a_supported_python_the_error_names_the_versions(fresh_tree: Path):
    message = _set_up(fresh_tree, PYTHON="/bin/false")
    assert message == ("setup: no Python 3.10 to 3.13 found among /bin/false: apt install python3, or set PYTHON=...\n")


def test_a_python_that_cannot_create_environments_is_refused(fresh_tree: Path):
    """Debian's python3 without python3-venv has no ensurepip."""
    python = fresh_tree / "python-without-ensurepip"
    python.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *ensurepip*) exit 1;; *_base_executable*) echo {python}; exit;; esac\n'
        f'exec {shutil.which("python3")} "$@"\n'
    )
    python.chmod(0o755)
    message = _set_up(fresh_tree, PYTHON=str(python))
    assert message == f"setup: {python} cannot create virtual environments: apt install python3-venv\n"


def test_a_java_home_without_java_is_refused(fresh_tree: Path):
    message = _set_up(fresh_tree, JAVA_HOME="/nowhere")
    assert message.startswith(
        "JAVA_HOME is /nowhere, but /nowhere/bin/java cannot be run: unset JAVA_HOME, or apt install"
    )
    assert message.count("\n") == 1


def test_a_full_disk_is_an_error_with_the_needed_space(fresh_tree: Path):
    """The test raises the required space above the size of any disk."""
    script = fresh_tree / "deploy" / "setup.sh"
    script.write_text(script.read_text().replace("NEEDED_MB=", "NEEDED_MB=99999"))
    message = _set_up(fresh_tree)
    assert f"MB free in {fresh_tree}" in message
    assert message.endswith("MB needed: free disk space\n")


def _set_up(tree: Path, **environment: str) -> str:
    done = subprocess.run(
        [tree / "deploy" / "setup.sh"], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert not (tree / ".venv").exists()
    return done.stderr
