"""What an operator can put right: one line that names the remedy, and no traceback."""

from __future__ import annotations


class RemedyError(Exception):
    """Something the operator can put right. Its text is one line: what is missing or wrong, then the remedy.

    Commands print it and exit with a code other than 0. Example: `Java 11 found at /usr/bin/java, but 17 or 21 is
    wanted: apt install openjdk-17-jre-headless, or set JAVA_HOME`.
    """
