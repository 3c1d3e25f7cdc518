"""Find a Java version that Spark 4 and Kafka 4 support."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path

from streaming.config.environment import without_settings
from streaming.errors import STAYS, RemedyError

SUPPORTED_JAVA_VERSIONS = (17, 21)
"""Spark 4.0 documents these two versions as supported. Kafka 4.2 runs on both."""

_REMEDY = "apt install openjdk-17-jre-headless, or set JAVA_HOME to a JDK 17 or 21"
_VERSION_TIMEOUT_SECONDS = 30.0


class JavaError(RemedyError):
    """Error: Java is missing, its version is not supported, or Spark cannot run in Java as the current user."""

    exit_code = STAYS


def find_java() -> Path:
    """Return the `java` of JAVA_HOME, or without JAVA_HOME the first `java` on PATH. Raises JavaError."""
    if java_home := os.environ.get("JAVA_HOME"):
        java = Path(java_home, "bin", "java")
        if not os.access(java, os.X_OK):
            raise JavaError(f"JAVA_HOME is {java_home}, but {java} cannot be run: unset JAVA_HOME, or {_REMEDY}")
    elif on_path := shutil.which("java"):
        java = Path(on_path)
    else:
        raise JavaError(f"no java found: {_REMEDY}")
    version = java_version(java)
    if version not in SUPPORTED_JAVA_VERSIONS:
        raise JavaError(f"Java {version} found at {java}, but 17 or 21 is required: {_REMEDY}")
    return java


def check_account() -> None:
    """Raise JavaError if the current user id has no account. Only Spark needs one, because Hadoop's login needs a name.

    In Java, a user id without an account has no name.
    """
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        raise JavaError(
            f"user id {os.getuid()} has no account on this machine, and Spark needs an account: run the monitor as a"
            " different user, or add the user id to /etc/passwd"
        ) from None


def java_version(java: Path) -> int:
    """Return the feature version of a `java` executable, for example 17. Raises JavaError if `java` does not run."""
    try:
        result = subprocess.run(
            [str(java), "-version"],
            capture_output=True,
            text=True,
            check=True,
            timeout=_VERSION_TIMEOUT_SECONDS,
            env=without_settings(os.environ),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaError(f"{java} does not run ({error}): {_REMEDY}") from error
    return feature_version(result.stderr)


def feature_version(output: str) -> int:
    """Return the feature version in the output of `java -version`. Raises JavaError if there is none.

    Example: 17 for `openjdk version "17.0.15" 2025-04-15`, and 8 for the older format `java version "1.8.0_392"`.
    """
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    if match is None:
        first_line = output.strip().partition("\n")[0]
        raise JavaError(f"`java -version` shows no version ({first_line!r}): {_REMEDY}")
    return int(match.group(1))


def main() -> None:
    """Print the path of the Java executable to use, or the error.

    `deploy/setup.sh` runs this module before it installs packages. So it imports only the standard library and our own.
    """
    try:
        print(find_java())  # noqa: T201 - a command's output
    except JavaError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
