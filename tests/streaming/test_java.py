"""Tests of the search for Java. Every other situation gives one line with its remedy."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from streaming.errors import STAYS
from streaming.java import (
    SUPPORTED_JAVA_VERSIONS,
    JavaError,
    check_account,
    feature_version,
    find_java,
    java_version,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("shown", "version"),
    [
        pytest.param('openjdk version "17.0.15" 2025-04-15', 17, id="an update release"),
        pytest.param('openjdk version "21" 2023-09-19', 21, id="the first release of a version has no dots"),
        pytest.param('java version "1.8.0_392"', 8, id="before 9 the feature version came second"),
        pytest.param('openjdk version "22-ea" 2024-03-19', 22, id="an early access build"),
        pytest.param(
            'Picked up JAVA_TOOL_OPTIONS: -Dx=1\nopenjdk version "11.0.2" 2019-01-15', 11, id="options come before it"
        ),
    ],
)
def test_the_feature_version_is_read_from_javas_output(shown: str, version: int):
    assert feature_version(shown) == version


def test_a_program_that_is_not_java_is_named_with_its_output():
    with pytest.raises(JavaError, match=r"shows no version .'hello'.*apt install"):
        feature_version("hello\n")


def test_java_home_takes_precedence_over_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Spark does the same. Two programs of one pipeline must not use two Java versions."""
    ours = _java_that_shows(tmp_path, 'openjdk version "21.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == ours


@pytest.mark.parametrize("version", [8, 11, 16, 18, 22, 25])
def test_an_unsupported_java_version_is_named_with_the_remedy(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    java = _java_that_shows(tmp_path, f'openjdk version "{version}.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError) as error:
        find_java()
    assert str(error.value).startswith(f"Java {version} found at {java}, but 17 or 21 is required: apt install ")
    assert "\n" not in str(error.value)


def test_a_user_id_without_an_account_is_named_before_spark_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With `docker run --user 12345`, `run` showed a Java stack trace, and `doctor` reported no problem.

    The container's supervisor started the monitor forever. Later, `rebalance-monitor broker` was refused too, but it
    needs Java without Spark.
    """
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    java = _java_that_shows(tmp_path, 'openjdk version "17.0.1"')
    monkeypatch.setattr("pwd.getpwuid", dict[int, str]().__getitem__)
    monkeypatch.setattr("os.getuid", lambda: 12345)
    with pytest.raises(
        JavaError, match=r"^user id 12345 has no account on this machine.*: run the monitor as"
    ) as error:
        check_account()
    assert error.value.exit_code == STAYS
    assert find_java() == java


def test_a_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(
        JavaError, match=f"JAVA_HOME is {tmp_path}, but .* cannot be run: unset JAVA_HOME, or apt install"
    ):
        find_java()


def test_without_java_the_package_to_install_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaError, match="no java found: apt install openjdk-17-jre-headless"):
        find_java()


@pytest.mark.skipif(shutil.which("java") is None, reason="java is not installed")
def test_the_java_of_this_machine_is_found_and_is_supported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert java_version(find_java()) in SUPPORTED_JAVA_VERSIONS


def _java_that_shows(java_home: Path, shown: str) -> Path:
    java = java_home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{shown}' >&2\n")
    java.chmod(0o755)
    return java
