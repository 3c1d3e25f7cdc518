"""Finding a Java that Spark 4 and Kafka 4 both run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from streaming.config.environment import without_settings
from streaming.errors import STAYS, RemedyError

SUPPORTED_JAVA_VERSIONS = (17, 21)
"""Spark 4.0 names these two as supported; Kafka 4.2 runs on both."""

_REMEDY = "apt install openjdk-17-jre-headless, or set JAVA_HOME to a JDK 17 or 21"
_VERSION_TIMEOUT_SECONDS = 30.0


class JavaError(RemedyError):
    """No Java, or not one of the supported versions."""

    exit_code = STAYS


def find_java() -> Path:
    """Return the `java` to run: the one under JAVA_HOME if that is set (as Spark does), else the first on PATH.

    Raises JavaError, in one line with its remedy, if there is none or it is of another version than 17 or 21.
    """
    java = _java_of_home(os.environ.get("JAVA_HOME", "")) or _java_on_path()
    version = java_version(java)
    if version not in SUPPORTED_JAVA_VERSIONS:
        raise JavaError(f"Java {version} found at {java}, but 17 or 21 is wanted: {_REMEDY}")
    return java


def java_version(java: Path) -> int:
    """Return the feature version of a `java` executable, such as 17. Raises JavaError if it doesn't run."""
    try:
        shown = subprocess.run(
            [str(java), "-version"],
            capture_output=True,
            text=True,
            check=True,
            timeout=_VERSION_TIMEOUT_SECONDS,
            env=without_settings(os.environ),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaError(f"{java} does not run ({error}): {_REMEDY}") from error
    return feature_version(shown.stderr)


def feature_version(shown: str) -> int:
    """Read the feature version out of what `java -version` shows.

    Example: `openjdk version "17.0.15" 2025-04-15` is 17, and the older form `java version "1.8.0_392"` is 8.
    """
    found = re.search(r'version "(?:1\.)?(\d+)', shown)
    if found is None:
        first_line = shown.strip().partition("\n")[0]
        raise JavaError(f"`java -version` shows no version ({first_line!r}): {_REMEDY}")
    return int(found.group(1))


def _java_of_home(java_home: str) -> Path | None:
    if not java_home:
        return None
    java = Path(java_home, "bin", "java")
    if not os.access(java, os.X_OK):
        raise JavaError(f"JAVA_HOME is {java_home}, but there is no {java}: unset it, or {_REMEDY}")
    return java


def _java_on_path() -> Path:
    java = shutil.which("java")
    if java is None:
        raise JavaError(f"no java found: {_REMEDY}")
    return Path(java)


def main() -> None:
    """Print the Java to use, or say what is missing. Needs no package: the set-up asks before it has installed any."""
    try:
        print(find_java())  # noqa: T201 - a command's output
    except JavaError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
