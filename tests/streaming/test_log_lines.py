"""Tests that a log line about one cluster begins with its name, because one process can monitor several clusters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

STREAMING = Path(__file__).parents[2] / "streaming"
SHARED_LINES = {
    "the maintenance of table %s failed (%s); trying again in %g s": "the tables are shared",
    "checkpoint %s: waiting at most %g s until process %s ends. It is the Java process of the previous monitor"
    " (process %s)": "the checkpoint belongs to one cluster",
    "Spark's Java process %d did not stop within %g s after the stop signal, so it is killed": "the JVM is shared",
    "passwords for the HTTP port are sent unencrypted: set metrics.tls_certificate_file": "the port is shared",
    "metrics at %s/metrics, pages at /": "the port is shared",
    "the %s of the HTTP port was renewed": "the port is shared",
    "the renewed %s cannot be used. The old %s stays in use: %s": "the port is shared",
    "a request on the HTTP port failed": "the port is shared",
    "a connection to the HTTP port failed": "the port is shared",
    "a connection to the HTTP port failed: %s": "the port is shared",
    "every user of this machine can read %s: mount this file with mode 0440": "files with secrets are shared",
    "%d rows appended to %s in %.1f ms": "the tables are shared",
    "could not write a checkpoint of table %s: %s": "the tables are shared",
    "added columns to table %s: %s": "the tables are shared",
    "removed %d damaged files from %s; the monitor does not need these files: %s": (
        "the folder of a checkpoint belongs to one cluster"
    ),
    "the maintenance of the tables took %.1f s": "the tables are shared",
    "downloading %s jars: %d/%d %s": "the jars are shared",
    "%d jars in %s are damaged and are replaced: %s": "the jars are shared",
    "stopped": "the whole process",
}
"""Log lines about resources that all clusters share, each with its reason."""


def log_calls(source: str) -> Iterator[tuple[str, str]]:
    """Yield each log message, with the expression of its first value.

    >>> list(log_calls("_log.log(level, '%s: ready', self._cluster)"))
    [('%s: ready', 'self._cluster')]
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("_log."):
            words, *values = node.args[1:] if ast.unparse(node.func) == "_log.log" else node.args
            yield ast.literal_eval(words), ast.unparse(values[0]) if values else ""


def names_its_cluster(message: str, first_value: str) -> bool:
    """Return True if a log line begins with a cluster's name."""
    return message.startswith(("%s: ", "%s ")) and first_value.rpartition(".")[2].strip("_") == "cluster"


LINES = [
    (file.relative_to(STREAMING).as_posix(), message, first_value)
    for file in sorted(STREAMING.rglob("*.py"))
    if "_log." in (source := file.read_text())
    for message, first_value in log_calls(source)
]


@pytest.mark.parametrize(("file", "message", "first_value"), LINES)
def test_a_log_line_names_its_cluster(file: str, message: str, first_value: str):
    """Topics, groups and partitions of two clusters have the same names."""
    assert names_its_cluster(message, first_value) or message in SHARED_LINES, (
        f"{file} logs {message!r} without the name of its cluster"
    )


def test_every_line_about_shared_resources_still_exists():
    assert SHARED_LINES.keys() <= {message for _, message, _ in LINES}


@pytest.mark.parametrize(
    ("call", "is_named"),
    [
        ('_log.warning("%s: brokers do not answer", self._cluster)', True),
        ('_log.error("%s cannot be watched", watch.cluster)', True),
        ('_log.log(level, "%s: waiting", self.cluster)', True),
        ('_log.warning("offsets of topic %s are unknown", topic)', False),
        ('_log.warning("%s: no such topic", topic)', False),
        ('_log.debug("stack trace of the failure:", exc_info=failure)', False),
    ],
)
def test_the_check_finds_lines_with_a_cluster_name(call: str, is_named: bool):
    (line,) = log_calls(call)
    assert names_its_cluster(*line) is is_named
